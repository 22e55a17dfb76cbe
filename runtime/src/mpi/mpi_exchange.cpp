//===- mpi_exchange.cpp - messages by MPI ---------------------------------===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// MPI is called by one thread at a time, under one lock, and moves data only
// inside calls; so an idle rank looks again every few microseconds. A message
// beyond what an int can count goes in parts.
//
//===----------------------------------------------------------------------===//

#include "takt-rt/mpi/mpi_exchange.h"

#include "takt-rt/core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <mpi.h>
#include <mutex>
#include <vector>

namespace takt::rt {

namespace {
using Clock = std::chrono::steady_clock;

constexpr Bytes kPart = Bytes(1) << 30;
std::mutex mpiMutex;

void check(int result, const std::string &name) {
  if (result == MPI_SUCCESS)
    return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(result, text, &length);
  throw Error(fmt::format("MPI failed, {}: {}", name, text),
              ExitCode::Communication);
}

/// One end of a mailbox: the other end's rank and a tag that only it uses.
class MpiMailbox final : public Mailbox {
public:
  MpiMailbox(int peer, int tag, std::string name)
      : peer(peer), tag(tag), name(std::move(name)) {}

protected:
  bool send(uint64_t turn, const std::byte *data, Bytes bytes,
            MoveTime &moved) override;
  bool arrives(uint64_t turn, std::byte *data, Bytes bytes, Take take) override;
  bool receive(uint64_t turn, std::byte *data, Bytes bytes, Take take,
               MoveTime &moved) override;

private:
  bool probe(Bytes bytes);
  void receivePart(std::byte *data, Bytes bytes, Take take);
  bool partIsDone();
  static Bytes partOf(Bytes bytes, Bytes done) {
    return std::min(bytes - done, kPart);
  }

  const int peer, tag;
  const std::string name;
  uint64_t finished = 0; ///< messages
  Bytes done = 0;        ///< of the message under way
  bool underWay = false; ///< a part of it
  bool hasBegun = false; ///< the message, at the receiving end
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Message message = MPI_MESSAGE_NULL;
  std::vector<std::byte> summand;
  MoveTime began;
};

bool MpiMailbox::partIsDone() {
  int flag = 0;
  check(MPI_Test(&request, &flag, MPI_STATUS_IGNORE), name);
  underWay = flag == 0;
  return flag != 0;
}

bool MpiMailbox::send(uint64_t turn, const std::byte *data, Bytes bytes,
                      MoveTime &moved) {
  std::lock_guard<std::mutex> lock(mpiMutex);
  while (finished == turn) {
    Bytes part = partOf(bytes, done);
    if (!underWay)
      check(MPI_Issend(data + done, int(part), MPI_BYTE, peer, tag,
                       MPI_COMM_WORLD, &request),
            name);
    if (!partIsDone())
      return false;
    done += part;
    if (done < bytes)
      continue;
    done = 0;
    ++finished;
    began = Clock::now();
  }
  moved = began;
  return finished > turn;
}

/// True once the next part has been offered; it must have the right size.
bool MpiMailbox::probe(Bytes bytes) {
  int flag = 0, count = 0;
  MPI_Status status;
  check(MPI_Improbe(peer, tag, MPI_COMM_WORLD, &flag, &message, &status), name);
  if (flag == 0)
    return false;
  check(MPI_Get_count(&status, MPI_BYTE, &count), name);
  if (count != partOf(bytes, done))
    throw Error(fmt::format("a message of {} bytes meets a receive of {} "
                            "bytes, {}",
                            count, bytes, name),
                ExitCode::Communication);
  return true;
}

void MpiMailbox::receivePart(std::byte *data, Bytes bytes, Take take) {
  Bytes part = partOf(bytes, done);
  if (take == Take::AddFloats)
    summand.resize(std::max(summand.size(), size_t(part)));
  check(MPI_Imrecv(take == Take::Copy ? data + done : summand.data(), int(part),
                   MPI_BYTE, &message, &request),
        name);
  underWay = true;
}

bool MpiMailbox::arrives(uint64_t turn, std::byte *data, Bytes bytes,
                         Take take) {
  std::lock_guard<std::mutex> lock(mpiMutex);
  if (finished != turn || (!hasBegun && !probe(bytes)))
    return false;
  if (!hasBegun) {
    began = Clock::now();
    receivePart(data, bytes, take);
  }
  hasBegun = true;
  return true;
}

bool MpiMailbox::receive(uint64_t, std::byte *data, Bytes bytes, Take take,
                         MoveTime &moved) {
  std::lock_guard<std::mutex> lock(mpiMutex);
  for (;;) {
    if (!underWay && !probe(bytes))
      return false;
    if (!underWay)
      receivePart(data, bytes, take);
    if (!partIsDone())
      return false;
    Bytes part = partOf(bytes, done);
    if (take == Take::AddFloats)
      takeBytes(take, summand.data(), data + done, part);
    done += part;
    if (done >= bytes)
      break;
  }
  done = 0;
  hasBegun = false;
  ++finished;
  moved = began;
  return true;
}

class MpiExchange final : public Exchange {
public:
  MpiExchange(const Plan &plan, int32_t rank);
  Bell &bell(int32_t) override { return ownBell; }
  void ringAll() override { ownBell.ring(); }
  MoveTime lookBy(MoveTime until) const override {
    constexpr auto kNap = std::chrono::microseconds(20);
    return std::min<MoveTime>(until, Clock::now() + kNap);
  }
  void finish() override { check(MPI_Finalize(), "at the end"); }

private:
  Bell ownBell;
};

MpiExchange::MpiExchange(const Plan &plan, int32_t rank) {
  int level = 0, mpiRank = 0, size = 0, isSet = 0;
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level),
        "at the start");
  if (level < MPI_THREAD_SERIALIZED)
    throw Error("this MPI cannot be used by threads", ExitCode::DoesNotFit);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &mpiRank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (mpiRank != rank || size != plan.numRanks())
    throw Error(fmt::format("MPI has this process as rank {} of {}, which is "
                            "rank {} of {}: was it started by mpirun?",
                            mpiRank, size, rank, plan.numRanks()),
                ExitCode::DoesNotFit);
  std::vector<BoxSpec> specs = boxesOf(plan, true);
  int *mostTag = nullptr;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &mostTag, &isSet);
  if (isSet != 0 && int64_t(specs.size()) > *mostTag)
    throw Error(fmt::format("the plan needs {} MPI tags, there are {}",
                            specs.size(), *mostTag),
                ExitCode::DoesNotFit);
  for (size_t i = 0; i < specs.size(); ++i) {
    const BoxKey &key = specs[i].key;
    if (key.from == rank || key.to == rank)
      boxes[key] = std::make_unique<MpiMailbox>(
          key.from == rank ? key.to : key.from, int(i), boxName(plan, key));
  }
}
} // namespace

std::unique_ptr<Exchange> connectMpi(const Plan &plan, int32_t rank) {
  return std::make_unique<MpiExchange>(plan, rank);
}

} // namespace takt::rt
