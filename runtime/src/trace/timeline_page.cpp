//===- timeline_page.cpp - the picture as a file or a page ------*- C++ -*-===//
//
// Part of the Takt project, under the Apache License v2.0.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The page's script moves boxes along the time axis only, so that rows, names
// and numbers keep their size at every zoom.
//
//===----------------------------------------------------------------------===//
#include "takt-rt/trace/timeline.h"

#include "timeline.h"

#include <fmt/format.h>

namespace takt::rt {

static constexpr const char *kPageStyle = R"(
body{margin:0;background:#fff}
main{overflow-x:auto}
p{font:12px Inter,"Segoe UI","Helvetica Neue",Arial,sans-serif;color:#6b7785;
margin:10px 16px}
svg{cursor:grab;display:block}
)";

static constexpr const char *kScript = R"(
(() => {
  const svg = document.querySelector('svg.takt'), d = svg.dataset;
  const left = +d.left, width = +d.width, span = +d.span;
  const unit = +d.unit, unitName = d.unitName;
  const boxes = [...svg.querySelectorAll('rect.b, rect.t')].map(e => {
    const next = e.nextElementSibling;
    const label = next && next.classList.contains('n') ? next : null;
    return {e, label, x: +e.getAttribute('x') - left,
            w: +e.getAttribute('width'),
            room: label ? label.textContent.length * 6.5 + 3 : 0};
  });
  const axes = [...svg.querySelectorAll('.axis')];
  const ends = [...svg.querySelectorAll('.end')];
  const make = (name, attributes, text) => {
    const e = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (const key in attributes) e.setAttribute(key, attributes[key]);
    if (text !== undefined) e.textContent = text;
    return e;
  };
  // The view: pixels from the left edge of time zero, and magnification.
  let zoom = 1, shift = 0, queued = false;

  function drawAxes() {
    const range = span / unit / zoom, from = shift / width * span / unit / zoom;
    let step = 10 ** Math.floor(Math.log10(range / 10));
    step *= [1, 2, 5, 10].find(f => range / (step * f) <= 10);
    for (const axis of axes) {
      axis.replaceChildren();
      const top = +axis.dataset.top, bottom = +axis.dataset.bottom;
      for (let i = Math.ceil(from / step - 1e-9);
           i * step <= (from + range) * 1.0001; ++i) {
        const x = left + (i * step - from) / range * width;
        axis.append(make('line', {class: 'grid', x1: x, x2: x, y1: top,
                                  y2: bottom}),
                    make('text', {class: 'tick', x, y: bottom + 13},
                         +(i * step).toPrecision(9) +
                             (i * step === 0 ? ' ' + unitName : '')));
      }
    }
  }
  function draw() {
    queued = false;
    for (const {e, label, x, w, room} of boxes) {
      const at = left + x * zoom - shift, wide = w * zoom;
      const seen = at < left + width && at + wide > left;
      e.style.display = seen ? '' : 'none';
      if (label)
        label.setAttribute('visibility',
                           seen && wide >= room ? 'visible' : 'hidden');
      if (!seen) continue;
      e.setAttribute('x', at);
      e.setAttribute('width', wide);
      if (label) label.setAttribute('x', at + wide / 2);
    }
    for (const e of ends) {
      const x = left + e.dataset.time / span * width * zoom - shift - 0.5;
      e.setAttribute('x1', x);
      e.setAttribute('x2', x);
    }
    drawAxes();
  }
  function view(newZoom, newShift) {
    zoom = Math.min(Math.max(newZoom, 1), 2000);
    shift = Math.min(Math.max(newShift, 0), width * (zoom - 1));
    if (!queued) requestAnimationFrame(draw);
    queued = true;
  }
  const place = event =>
    event.clientX - svg.getBoundingClientRect().left - left;
  svg.addEventListener('wheel', event => {
    event.preventDefault();
    const factor = Math.exp(-event.deltaY / 400), at = place(event);
    const next = Math.min(Math.max(zoom * factor, 1), 2000);
    view(next, (shift + at) * next / zoom - at);
  }, {passive: false});
  svg.addEventListener('pointerdown', event => {
    const from = event.clientX, start = shift;
    const move = e => view(zoom, start - (e.clientX - from));
    svg.setPointerCapture(event.pointerId);
    svg.addEventListener('pointermove', move);
    svg.addEventListener('pointerup', () =>
      svg.removeEventListener('pointermove', move), {once: true});
  });
  svg.addEventListener('dblclick', () => view(1, 0));
})();
)";

void writeTimelineSvg(std::ostream &out, const Plan &plan, const Runs &runs) {
  writePicture(out, plan, runs, PictureKind::File);
}

void writeTimelineHtml(std::ostream &out, const Plan &plan, const Runs &runs) {
  out << "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      << "<title>" << xmlEscaped(plan.model) << " timeline</title>\n<style>"
      << kPageStyle << "</style></head>\n<body><main>\n";
  writePicture(out, plan, runs, PictureKind::InPage);
  out << "</main>\n<p>Wheel: zoom in time. Drag: move. Double click: whole "
         "step. Point at a box for its name and times.</p>\n<script>"
      << kScript << "</script></body></html>\n";
}

} // namespace takt::rt
