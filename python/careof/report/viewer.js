// Draws the page's figures. Every figure shows at most VISIBLE points of a series at once and all of them when
// one has zoomed in far enough; the figures' time axes move together.
"use strict";
(() => {
  const VISIBLE = 4000;
  const BARS = 1500;
  const KINDS = { u2: Uint16Array, u4: Uint32Array, f4: Float32Array, f8: Float64Array };

  const unpack = (packed) => {
    const text = atob(packed.bdata);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    return new KINDS[packed.dtype](bytes.buffer);
  };

  // The first index whose x is not below the value.
  const seek = (x, value) => {
    let low = 0;
    let high = x.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (x[middle] < value) low = middle + 1;
      else high = middle;
    }
    return low;
  };

  // Indices of what to draw between two times: of each stretch the first, last, lowest and highest point.
  const visible = (x, y, from, to) => {
    const begin = Math.max(seek(x, from) - 1, 0);
    const end = Math.min(seek(x, to) + 1, x.length);
    const kept = [];
    if (end - begin <= VISIBLE) {
      for (let i = begin; i < end; i++) kept.push(i);
      return kept;
    }
    const width = (x[end - 1] - x[begin]) / (VISIBLE / 4) || 1;
    for (let i = begin; i < end; ) {
      const stop = x[i] + width;
      let low = i;
      let high = i;
      let last = i;
      for (let j = i; j < end && (x[j] < stop || j === i); j++) {
        if (y[j] < y[low]) low = j;
        if (y[j] > y[high]) high = j;
        last = j;
      }
      const four = [i, low, high, last].sort((a, b) => a - b);
      four.forEach((index, k) => { if (k === 0 || index !== four[k - 1]) kept.push(index); });
      i = last + 1;
    }
    return kept;
  };

  const pick = (values, indices) => indices.map((i) => values[i]);

  const part = (trace, from, to) => {
    const indices = visible(trace.x, trace.y, from, to);
    const shown = { x: pick(trace.x, indices), y: pick(trace.y, indices) };
    if (trace.customdata) {
      shown.customdata = pick(trace.customdata, indices);
      shown.error_y = {
        type: "data", symmetric: false, array: shown.customdata, width: 0, thickness: 2,
        color: trace.marker.color, visible: indices.length <= BARS,
      };
    }
    return shown;
  };

  const drawn = JSON.parse(document.getElementById("drawn").textContent);
  const figures = drawn.figures.filter((figure) => figure.data.length);
  for (const figure of figures) {
    for (const trace of figure.data) {
      for (const key of ["x", "y", "customdata"]) if (trace[key]) trace[key] = unpack(trace[key]);
    }
    figure.element = document.getElementById(figure.place);
  }

  const show = (figure, from, to) => {
    const shown = figure.data.map((trace) => Object.assign({}, trace, part(trace, from, to)));
    const layout = Object.assign({}, figure.layout);
    layout.xaxis = Object.assign({}, layout.xaxis, { range: [from, to], autorange: false });
    // The other axis fits what is in sight, unless somebody chose what to see of it.
    layout.yaxis = Object.assign({}, layout.yaxis, figure.y ? { range: figure.y, autorange: false } : { autorange: true });
    return Plotly.react(figure.element, shown, layout, {
      responsive: true, displaylogo: false, modeBarButtonsToRemove: ["lasso2d", "select2d", "zoomIn2d", "zoomOut2d"],
    });
  };

  let moving = false;
  let now = [0, 0];
  const follow = async (from, to) => {
    moving = true;
    now = [from, to];
    for (const figure of figures) await show(figure, from, to);
    moving = false;
  };

  const open = async (view) => {
    for (const figure of figures) figure.y = view.ranges[figure.place];
    await follow(view.from, view.to);
    press(view);
  };

  const nav = document.getElementById("views");
  const press = (view) => {
    for (const button of nav.children) button.setAttribute("aria-pressed", String(button.textContent === view?.label));
  };
  for (const view of drawn.views.length > 1 ? drawn.views : []) {
    const button = document.createElement("button");
    button.textContent = view.label;
    button.addEventListener("click", () => open(view));
    nav.append(button);
  }

  const changed = async (figure, change) => {
    if (moving) return;
    const [from, to] = figure.layout.xaxis.range;
    let [begin, end] = now;
    if ("xaxis.range[0]" in change) [begin, end] = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
    else if (change["xaxis.range"]) [begin, end] = change["xaxis.range"];
    else if (change["xaxis.autorange"]) {
      [begin, end] = [from, to];
      for (const other of figures) other.y = undefined;
    }
    if ("yaxis.range[0]" in change) figure.y = [change["yaxis.range[0]"], change["yaxis.range[1]"]];
    else if (change["yaxis.range"]) figure.y = change["yaxis.range"];
    else if (change["yaxis.autorange"]) figure.y = undefined;
    else if (begin === now[0] && end === now[1]) return;
    press(null);
    await follow(begin, end);
  };

  const draw = async () => {
    for (const figure of figures) now = figure.layout.xaxis.range;
    await follow(...now);
    for (const figure of figures) figure.element.on("plotly_relayout", (change) => changed(figure, change));
    press(drawn.views[0]);
    // report.html#1 opens at the first handover.
    const wanted = location.hash && drawn.views[Number(location.hash.slice(1))];
    if (wanted) await open(wanted);
    document.body.dataset.drawn = "yes";
  };
  draw();
})();
