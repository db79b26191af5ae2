// Unpacks the page's curves and draws its graphs, whose time axes move together.
"use strict";
(async () => {
  const drawn = JSON.parse(document.getElementById("drawn").textContent);
  const figures = drawn.figures.filter((figure) => figure.series.length);

  // The block of numbers; careof/plot/packed.py says what is in it.
  const unpacked = async () => {
    const packed = Uint8Array.from(atob(document.getElementById("curves").textContent), (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  };

  const readAll = (bytes) => {
    let at = 0;
    const differences = (count, scale) => {
      const values = new Float64Array(count);
      let sum = 0;
      for (let k = 0; k < count; k++) {
        let value = 0;
        let factor = 1;
        let byte;
        do {
          byte = bytes[at++];
          value += (byte & 127) * factor;
          factor *= 128;
        } while (byte > 127);
        sum += value % 2 ? -(value + 1) / 2 : value / 2;
        values[k] = sum / scale;
      }
      return values;
    };
    const floats = (count) => {
      const values = new Float64Array(bytes.slice(at, at + 8 * count).buffer);
      at += 8 * count;
      return values;
    };
    const forms = { whole: (count) => differences(count, 1), billionths: (count) => differences(count, 1e9), floats };
    for (const figure of drawn.figures) {
      for (const series of figure.series) {
        for (const name of ["x", "y", "height"]) if (series[name]) series[name] = forms[series[name]](series.points);
      }
    }
  };

  let graphs = [];
  const show = (from, to) => { for (const graph of graphs) graph.show(from, to); };
  const moved = (from, to) => {
    press(null);
    if (from !== null) return show(from, to);
    for (const graph of graphs) {
      graph.chosen = undefined;
      graph.show(0, graph.figure.end);
    }
    return undefined;
  };

  const nav = document.getElementById("views");
  const press = (view) => {
    for (const button of nav.children) button.setAttribute("aria-pressed", String(button.textContent === view?.label));
  };
  const open = (view) => {
    for (const graph of graphs) graph.chosen = view.ranges[graph.figure.place] ?? undefined;
    show(view.from, view.to);
    press(view);
  };
  for (const view of drawn.views.length > 1 ? drawn.views : []) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = view.label;
    button.addEventListener("click", () => open(view));
    nav.append(button);
  }

  try {
    readAll(await unpacked());
  } catch (error) {
    for (const figure of figures) document.getElementById(figure.place).textContent = `This browser cannot draw the graph: ${error}`;
    return;
  }
  graphs = figures.map((figure) => new Graph(figure, document.getElementById(figure.place), moved));
  // report.html#1 opens at the first handover, report.html#0 shows the whole run.
  const wanted = location.hash ? Number(location.hash.slice(1)) : drawn.open;
  const view = drawn.views[wanted] ?? drawn.views[drawn.open];
  if (view) open(view);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { for (const graph of graphs) graph.soon(); });
  requestAnimationFrame(() => requestAnimationFrame(() => { document.body.dataset.drawn = "yes"; }));
})();
