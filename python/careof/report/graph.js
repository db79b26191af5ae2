// One graph on a canvas: axes, curves, marks, shaded spans, a legend, and what the pointer is on.
"use strict";

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
const visible = (x, y, from, to, most) => {
  const begin = Math.max(seek(x, from) - 1, 0);
  const end = Math.min(seek(x, to) + 1, x.length);
  const kept = [];
  if (end - begin <= most) {
    for (let i = begin; i < end; i++) kept.push(i);
    return kept;
  }
  const width = (x[end - 1] - x[begin]) / (most / 4) || 1;
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

// Round steps of an axis: 1, 2 or 5 times a power of ten, at most so many.
const stepOf = (span, most) => {
  const rough = span / Math.max(most, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((one) => one * power >= rough * 0.999999);
};

const ticksOf = (low, high, most) => {
  const step = stepOf(high - low, most);
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) ticks.push(k * step);
  return { ticks, step };
};

// Of a logarithmic axis: 1, 2 and 5, or powers of ten where there are many; `low` and `high` are exponents.
const logTicks = (low, high, most) => {
  if (high - low < 0.5) return ticksOf(10 ** low, 10 ** high, most).ticks;
  const ticks = [];
  const within = (high - low) * 3 <= most ? [1, 2, 5] : [1];
  const every = Math.max(1, Math.ceil((high - low) / most));
  for (let power = Math.floor(low); power <= high; power++) {
    if (power % every) continue;
    for (const digit of within) {
      const value = digit * 10 ** power;
      if (Math.log10(value) >= low - 1e-9 && Math.log10(value) <= high + 1e-9) ticks.push(value);
    }
  }
  return ticks;
};

const decimals = (step) => Math.min(Math.max(0, -Math.floor(Math.log10(step) + 1e-9)), 9);

const PREFIXES = [[1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];
const withPrefix = (value, step) => {
  if (value === 0) return "0";
  const [scale, prefix] = PREFIXES.find(([one]) => Math.abs(value) >= one) ?? PREFIXES.at(-1);
  return (value / scale).toFixed(decimals(step / scale)) + prefix;
};

const inSeconds = (value, step) => value.toFixed(decimals(step));
const exactly = (value) => value.toLocaleString("en", { maximumSignificantDigits: 12 });

const MOST_SHOWN = 4000;
const MOST_BARS = 1500;
const NEAR = 24;

class Graph {
  // `moved(from, to)` is called when somebody chooses another stretch of time; null is all of it.
  constructor(figure, place, moved) {
    this.figure = figure;
    this.place = place;
    this.moved = moved;
    this.from = 0;
    this.to = figure.end;
    this.chosen = undefined; // what of the other axis somebody chose to see
    this.hidden = new Set();
    this.points = [];

    this.legend = place.appendChild(document.createElement("div"));
    this.legend.className = "legend";
    this.swatches = figure.series.map((series, index) => this.addKey(series, index));
    this.frame = place.appendChild(document.createElement("div"));
    this.frame.className = "frame";
    this.canvas = this.frame.appendChild(document.createElement("canvas"));
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", `${figure.title}: ${figure.series.map((one) => one.name).join(", ")} over time`);
    this.selection = this.frame.appendChild(document.createElement("div"));
    this.selection.className = "selection";
    this.tip = this.frame.appendChild(document.createElement("div"));
    this.tip.className = "tip";
    this.listen();
    new ResizeObserver(() => this.soon()).observe(this.frame);
  }

  addKey(series, index) {
    const key = document.createElement("button");
    key.type = "button";
    key.setAttribute("aria-pressed", "true");
    const swatch = key.appendChild(document.createElement("i"));
    key.append(series.name);
    if (series.points < series.of) key.title = `${exactly(series.points)} of ${exactly(series.of)} points`;
    key.addEventListener("click", () => {
      if (!this.hidden.delete(index)) this.hidden.add(index);
      key.setAttribute("aria-pressed", String(!this.hidden.has(index)));
      this.soon();
    });
    this.legend.append(key);
    return swatch;
  }

  // Hides the curves of these names.
  hide(names) {
    this.figure.series.forEach(({ name }, index) => { if (names.has(name)) this.legend.children[index].click(); });
  }

  show(from, to) {
    this.from = from;
    this.to = to;
    this.soon();
  }

  soon() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = undefined;
      this.draw();
    });
  }

  draw() {
    const style = getComputedStyle(document.documentElement);
    const named = (name) => style.getPropertyValue(name).trim();
    const isDark = named("--scheme") === "dark";
    this.colour = (series) => series.colours[isDark ? 1 : 0];
    this.figure.series.forEach((series, index) => { this.swatches[index].style.background = this.colour(series); });
    const { clientWidth: width, clientHeight: height } = this.frame;
    if (!width || !height) return;
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    const pen = this.canvas.getContext("2d");
    this.pen = pen;
    pen.scale(ratio, ratio);
    pen.clearRect(0, 0, width, height);
    pen.font = "12px system-ui, sans-serif";

    const shown = this.figure.series.map((series, index) =>
      this.hidden.has(index) ? [] : visible(series.x, series.y, this.from, this.to, MOST_SHOWN));
    const [low, high] = this.chosen ?? this.fit(shown);
    const scaled = this.figure.log ? [Math.log10(low), Math.log10(high)] : [low, high];
    const most = Math.max(Math.floor(height / 48), 2);
    const { ticks, step } = this.figure.log
      ? { ticks: logTicks(...scaled, most * 1.5), step: 0 }
      : ticksOf(low, high, most);
    const labels = ticks.map((value) => withPrefix(value, step || 10 ** Math.floor(Math.log10(value))));
    const widest = Math.max(...labels.map((label) => pen.measureText(label).width), 20);
    const box = { left: Math.ceil(widest) + 30, top: 10, right: width - 12, bottom: height - 40 };
    Object.assign(this, { box, low, high });
    const [first, last] = scaled;
    this.xAt = (time) => box.left + ((time - this.from) / (this.to - this.from)) * (box.right - box.left);
    this.yAt = (value) => {
      const place = this.figure.log ? Math.log10(Math.max(value, 1e-12)) : value;
      return box.bottom - ((place - first) / (last - first)) * (box.bottom - box.top);
    };
    this.timeAt = (x) => this.from + ((x - box.left) / (box.right - box.left)) * (this.to - this.from);
    this.valueAt = (y) => {
      const place = first + ((box.bottom - y) / (box.bottom - box.top)) * (last - first);
      return this.figure.log ? 10 ** place : place;
    };

    pen.save();
    pen.beginPath();
    pen.rect(box.left, box.top, box.right - box.left, box.bottom - box.top);
    pen.clip();
    for (const span of this.figure.spans) this.drawSpan(span, named);
    pen.restore();
    this.drawAxes(ticks, labels, named);
    pen.save();
    pen.beginPath();
    pen.rect(box.left, box.top, box.right - box.left, box.bottom - box.top);
    pen.clip();
    this.points = [];
    this.figure.series.forEach((series, index) => {
      if (series.steps) this.drawSteps(series, shown[index]);
      else this.drawMarks(series, shown[index]);
    });
    for (const span of this.figure.spans) this.drawLabel(span, named);
    pen.restore();
  }

  // The range of what is in sight, with a margin.
  fit(shown) {
    let low = Infinity;
    let high = -Infinity;
    this.figure.series.forEach((series, index) => {
      for (const i of shown[index]) {
        if (!series.steps && (series.x[i] < this.from || series.x[i] > this.to)) continue;
        const y = series.y[i];
        if (this.figure.log && y <= 0) continue;
        low = Math.min(low, y);
        high = Math.max(high, y + (series.height ? series.height[i] : 0));
      }
    });
    if (low > high) return this.figure.log ? [0.1, 10] : [0, 1];
    if (this.figure.log) return [low / 1.2, high * 1.2];
    if (this.figure.zero) low = Math.min(low, 0);
    const margin = (high - low || Math.abs(high) || 1) * 0.06;
    return [low === 0 || (low > 0 && low < margin) ? 0 : low - margin, high + margin];
  }

  drawAxes(ticks, labels, named) {
    const { pen, box } = this;
    pen.strokeStyle = named("--grid");
    pen.fillStyle = named("--soft");
    pen.lineWidth = 1;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    ticks.forEach((value, index) => {
      const y = Math.round(this.yAt(value)) + 0.5;
      this.line(box.left, y, box.right, y);
      pen.fillText(labels[index], box.left - 6, y);
    });
    const time = ticksOf(this.from, this.to, Math.max((box.right - box.left) / 86, 2));
    pen.textAlign = "center";
    pen.textBaseline = "top";
    for (const value of time.ticks) {
      const x = Math.round(this.xAt(value)) + 0.5;
      this.line(x, box.top, x, box.bottom);
      pen.fillText(inSeconds(value, time.step), Math.min(x, box.right - 8), box.bottom + 6);
    }
    pen.fillText("time (s)", (box.left + box.right) / 2, box.bottom + 23);
    pen.save();
    pen.translate(11, (box.top + box.bottom) / 2);
    pen.rotate(-Math.PI / 2);
    pen.textBaseline = "middle";
    pen.fillText(this.figure.yTitle, 0, 0);
    pen.restore();
  }

  line(fromX, fromY, toX, toY) {
    this.pen.beginPath();
    this.pen.moveTo(fromX, fromY);
    this.pen.lineTo(toX, toY);
    this.pen.stroke();
  }

  drawSpan(span, named) {
    const { pen, box } = this;
    const left = this.xAt(span.from);
    const right = this.xAt(span.to);
    if (right < box.left || left > box.right) return;
    pen.fillStyle = named(span.stall ? "--stall" : "--handover");
    // A handover that takes no time on this scale is still a line.
    pen.fillRect(left, box.top, Math.max(right - left, span.stall ? 1 : 2), box.bottom - box.top);
  }

  drawLabel(span, named) {
    const { pen, box } = this;
    const x = this.xAt(span.from);
    if (!span.label || x < box.left - 1 || x > box.right) return;
    pen.font = "11px system-ui, sans-serif";
    const width = pen.measureText(span.label).width;
    pen.textAlign = "left";
    pen.textBaseline = "top";
    pen.fillStyle = named("--label");
    pen.fillText(span.label, Math.max(Math.min(x + 4, box.right - width - 4), box.left + 2), box.top + 3);
  }

  drawSteps(series, indices) {
    const { pen } = this;
    if (!indices.length) return;
    pen.strokeStyle = this.colour(series);
    pen.lineWidth = series.width;
    pen.beginPath();
    let y = this.yAt(series.y[indices[0]]);
    pen.moveTo(this.xAt(series.x[indices[0]]), y);
    for (const i of indices.slice(1)) {
      const x = this.xAt(series.x[i]);
      pen.lineTo(x, y);
      y = this.yAt(series.y[i]);
      pen.lineTo(x, y);
    }
    pen.stroke();
  }

  drawMarks(series, indices) {
    const { pen } = this;
    const colour = this.colour(series);
    pen.fillStyle = colour;
    pen.strokeStyle = colour;
    const size = indices.length > MOST_BARS ? Math.max(series.size * 0.6, 2) : series.size;
    for (const i of indices) {
      const x = this.xAt(series.x[i]);
      const y = this.yAt(series.y[i]);
      const height = series.height ? y - this.yAt(series.y[i] + series.height[i]) : 0;
      this.points.push({ x, y: y - height / 2, series, i });
      // Where segments are as high as they are long, they are bars.
      if (height > size) pen.fillRect(x - 1, y - height, 2, height);
      else this.mark(series.mark, x, y, size / 2);
    }
  }

  mark(kind, x, y, half) {
    const { pen } = this;
    pen.beginPath();
    if (kind === "x") {
      pen.lineWidth = 1.8;
      pen.moveTo(x - half, y - half);
      pen.lineTo(x + half, y + half);
      pen.moveTo(x - half, y + half);
      pen.lineTo(x + half, y - half);
      pen.stroke();
      return;
    }
    if (kind === "diamond") [[0, -1], [1, 0], [0, 1], [-1, 0]].forEach(([dx, dy]) => pen.lineTo(x + dx * half, y + dy * half));
    else if (kind === "triangle-up") [[0, -1], [1, 1], [-1, 1]].forEach(([dx, dy]) => pen.lineTo(x + dx * half, y + dy * half));
    else pen.arc(x, y, half, 0, 2 * Math.PI);
    pen.fill();
  }

  // The nearest mark, or else the nearest curve.
  under(x, y) {
    const { box } = this;
    if (!box || x < box.left || x > box.right || y < box.top || y > box.bottom) return null;
    let best = null;
    let distance = NEAR;
    for (const point of this.points) {
      const away = Math.hypot(point.x - x, point.y - y);
      if (away < distance) [best, distance] = [point, away];
    }
    if (best) return { ...best, time: best.series.x[best.i] };
    const time = this.timeAt(x);
    this.figure.series.forEach((series, index) => {
      if (!series.steps || this.hidden.has(index)) return;
      const i = seek(series.x, time + 1e-12) - 1;
      if (i < 0) return;
      const away = Math.abs(this.yAt(series.y[i]) - y);
      if (away < distance) [best, distance] = [{ x, y: this.yAt(series.y[i]), series, i, time: series.x[i] }, away];
    });
    return best;
  }

  point(x, y) {
    const found = this.under(x, y);
    this.tip.style.display = found ? "block" : "none";
    if (!found) return;
    const { series, i } = found;
    const bytes = series.height ? `, ${exactly(series.height[i])} bytes` : "";
    const since = series.steps ? "since" : "at";
    this.tip.textContent = `${series.name}: ${exactly(series.y[i])}${bytes}, ${since} ${found.time.toFixed(6)} s`;
    const width = this.tip.offsetWidth;
    this.tip.style.left = `${Math.max(Math.min(found.x + 10, this.frame.clientWidth - width - 2), 0)}px`;
    this.tip.style.top = `${Math.max(found.y - 34, 0)}px`;
  }

  zoom(at, factor) {
    const from = at - (at - this.from) * factor;
    this.move(from, from + (this.to - this.from) * factor);
  }

  // Never outside the run, and never so near that numbers could not tell times apart.
  move(from, to) {
    const span = Math.min(Math.max(to - from, 1e-6), this.figure.end);
    const begin = Math.min(Math.max(from, 0), this.figure.end - span);
    this.moved(begin, begin + span);
  }

  whole() {
    this.moved(null, null);
  }

  listen() {
    const { canvas } = this;
    const place = (event) => {
      const frame = canvas.getBoundingClientRect();
      return [event.clientX - frame.left, event.clientY - frame.top];
    };
    const fingers = new Map();
    let drag = null;
    const end = () => {
      drag = null;
      this.selection.style.display = "none";
    };
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      canvas.setPointerCapture(event.pointerId);
      const [x, y] = place(event);
      if (event.pointerType === "touch") fingers.set(event.pointerId, x);
      drag = { x, y, from: this.from, to: this.to, pans: event.shiftKey || event.pointerType === "touch" };
      if (fingers.size === 2) drag = { pinch: [...fingers.values()], from: this.from, to: this.to };
    });
    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = place(event);
      if (fingers.has(event.pointerId)) fingers.set(event.pointerId, x);
      if (!drag) return this.point(x, y);
      this.tip.style.display = "none";
      const { box } = this;
      const second = (pixels) => (pixels / (box.right - box.left)) * (drag.to - drag.from);
      if (drag.pinch) {
        const [a, b] = drag.pinch;
        const [c, d] = [...fingers.values()];
        if (d === undefined || Math.abs(d - c) < 10 || Math.abs(b - a) < 1) return undefined;
        const factor = Math.abs((b - a) / (d - c));
        const middle = drag.from + second((a + b) / 2 - box.left);
        const from = middle - second((c + d) / 2 - box.left) * factor;
        return this.move(from, from + (drag.to - drag.from) * factor);
      }
      if (drag.pans) return this.move(drag.from - second(x - drag.x), drag.to - second(x - drag.x));
      const [left, right] = [Math.max(Math.min(x, drag.x), box.left), Math.min(Math.max(x, drag.x), box.right)];
      const flat = Math.abs(y - drag.y) < 12;
      const [top, bottom] = flat ? [box.top, box.bottom] : [Math.min(y, drag.y), Math.max(y, drag.y)];
      Object.assign(this.selection.style, {
        display: "block", left: `${left}px`, top: `${top}px`, width: `${Math.max(right - left, 0)}px`, height: `${bottom - top}px`,
      });
      return undefined;
    });
    canvas.addEventListener("pointerup", (event) => {
      fingers.delete(event.pointerId);
      const [x, y] = place(event);
      const began = drag;
      end();
      if (!began || began.pans || began.pinch || Math.abs(x - began.x) < 6) return this.point(x, y);
      if (Math.abs(y - began.y) >= 12) {
        const values = [this.valueAt(y), this.valueAt(began.y)];
        this.chosen = [Math.min(...values), Math.max(...values)];
      }
      const times = [this.timeAt(x), this.timeAt(began.x)];
      return this.move(Math.min(...times), Math.max(...times));
    });
    canvas.addEventListener("pointercancel", (event) => {
      fingers.delete(event.pointerId);
      end();
    });
    canvas.addEventListener("pointerleave", () => { this.tip.style.display = "none"; });
    canvas.addEventListener("dblclick", () => this.whole());
    // Pinching a touchpad comes as a wheel with Ctrl; a plain wheel scrolls the page.
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.zoom(this.timeAt(place(event)[0]), 1.002 ** Math.max(Math.min(event.deltaY, 200), -200));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const span = this.to - this.from;
      const middle = (this.from + this.to) / 2;
      const keys = {
        ArrowLeft: () => this.move(this.from - span / 5, this.to - span / 5),
        ArrowRight: () => this.move(this.from + span / 5, this.to + span / 5),
        "+": () => this.zoom(middle, 0.5),
        "=": () => this.zoom(middle, 0.5),
        "-": () => this.zoom(middle, 2),
        0: () => this.whole(),
      };
      if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      keys[event.key]();
    });
  }
}
