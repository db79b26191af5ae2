// Unpacks curves and draws graphs of them, whose time axes move together.
"use strict";

// The block of numbers, base64; careof/plot/packed.py says what is in it.
const unpacked = async (block) => {
  const letters = atob(block);
  const packed = new Uint8Array(letters.length);
  for (let k = 0; k < letters.length; k++) packed[k] = letters.charCodeAt(k);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
};

// Puts the numbers in the place of what says how they are packed.
const readAll = (figures, bytes) => {
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
  for (const figure of figures) {
    for (const series of figure.series) {
      for (const name of ["x", "y", "height"]) if (series[name]) series[name] = forms[series[name]](series.points);
    }
  }
};

class Viewer {
  // `nav` gets a button for each view, if there are several.
  constructor(nav) {
    this.nav = nav;
    this.graphs = [];
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { for (const graph of this.graphs) graph.soon(); });
  }

  // Draws each figure in its place, in a view of `drawn.views`.
  async draw(drawn, block, view) {
    const figures = drawn.figures.filter((figure) => figure.series.length);
    const bytes = await unpacked(block);
    readAll(drawn.figures, bytes);
    this.nav.replaceChildren();
    for (const one of drawn.views.length > 1 ? drawn.views : []) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = one.label;
      button.addEventListener("click", () => this.open(one));
      this.nav.append(button);
    }
    this.graphs = figures.map((figure) => {
      const place = document.getElementById(figure.place);
      place.replaceChildren();
      return new Graph(figure, place, (from, to) => this.moved(from, to));
    });
    if (view) this.open(view);
  }

  open(view) {
    for (const graph of this.graphs) graph.chosen = view.ranges[graph.figure.place] ?? undefined;
    this.show(view.from, view.to);
    this.press(view);
  }

  show(from, to) {
    for (const graph of this.graphs) graph.show(from, to);
  }

  // Somebody chose a stretch of time in one of the graphs; null is all of it.
  moved(from, to) {
    this.press(null);
    if (from !== null) return this.show(from, to);
    for (const graph of this.graphs) {
      graph.chosen = undefined;
      graph.show(0, graph.figure.end);
    }
    return undefined;
  }

  press(view) {
    this.view = view;
    for (const button of this.nav.children) button.setAttribute("aria-pressed", String(button.textContent === view?.label));
  }
}
