# Helpers every Takt target goes through, so that warnings, standard and include
# paths are decided in one place.
include_guard()

set(TAKT_SOURCE_ROOT "${CMAKE_CURRENT_LIST_DIR}/..")

# C++17, warnings as errors, Takt's include folders.
function(takt_configure_target target)
  target_compile_features(${target} PUBLIC cxx_std_17)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE -Wall -Wextra)
  if(TAKT_ENABLE_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

# add_takt_library(name SOURCES a.cpp ... LINK lib ...)
# A static library of lib/: sees include/ and the runtime's headers.
function(add_takt_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  takt_configure_target(${name})
  target_include_directories(${name} PUBLIC ${TAKT_SOURCE_ROOT}/include)
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
endfunction()

# takt_use_mlir(target): link the shared MLIR and LLVM, headers as system headers.
function(takt_use_mlir target)
  target_include_directories(${target} SYSTEM PUBLIC ${MLIR_INCLUDE_DIRS}
    ${LLVM_INCLUDE_DIRS} ${CMAKE_BINARY_DIR}/dialects/include)
  target_include_directories(${target} PUBLIC ${TAKT_SOURCE_ROOT}/dialects)
  separate_arguments(defs NATIVE_COMMAND ${LLVM_DEFINITIONS})
  target_compile_definitions(${target} PUBLIC ${defs})
  target_link_libraries(${target} PUBLIC MLIR LLVM)
endfunction()

# add_takt_unit_test(name SOURCES a.cpp ... LINK lib ... LABELS label ...)
# A GoogleTest program; every TEST becomes one ctest entry. A label is the row of
# a published system in docs/reference/systems.md: `B1` for the whole program, or
# `A3=Repeats.*` for the tests of a filter. A test has one label.
function(add_takt_unit_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;LABELS" ${ARGN})
  find_package(GTest REQUIRED)
  include(GoogleTest)
  add_executable(${name} ${ARG_SOURCES})
  takt_configure_target(${name})
  target_compile_definitions(${name} PRIVATE
    TAKT_TEST_DATA="${TAKT_SOURCE_ROOT}/test/data"
    TAKT_SOURCE_DIR="${TAKT_SOURCE_ROOT}")
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest GTest::gtest_main)

  set(discover TEST_PREFIX "unit/${name}/" DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES)
  set(labelled "")
  set(rest_label "")
  foreach(label IN LISTS ARG_LABELS)
    if(label MATCHES "^([A-Z0-9]+)=(.+)$")
      gtest_discover_tests(${name} ${discover} TEST_FILTER "${CMAKE_MATCH_2}"
        PROPERTIES LABELS "${CMAKE_MATCH_1}")
      list(APPEND labelled "${CMAKE_MATCH_2}")
    elseif(rest_label)
      message(FATAL_ERROR "${name}: '${rest_label}' and '${label}' both label "
        "what no filter names")
    else()
      set(rest_label ${label})
    endif()
  endforeach()
  list(JOIN labelled ":" labelled)
  gtest_discover_tests(${name} ${discover} TEST_FILTER "*-${labelled}"
    PROPERTIES LABELS "${rest_label}")
endfunction()
