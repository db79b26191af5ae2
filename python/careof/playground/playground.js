// Sends the values of the controls whenever one changes, and shows what comes back.
"use strict";
(() => {
  const by = (id) => document.getElementById(id);
  const form = by("choices");
  const fields = [...form.querySelectorAll("[name]")];
  const field = (name) => form.querySelector(`[name="${name}"]`);
  const boxes = [...form.querySelectorAll("#assist input")];
  const viewer = new Viewer(by("views"));
  // A run that takes longer than this makes room for what was chosen meanwhile.
  const PATIENCE_MS = 400;

  const choices = () => ({
    ...Object.fromEntries(fields.map((one) => [one.name, one.value])),
    assist: boxes.filter((box) => box.checked).map((box) => box.value).join("+") || "none",
  });
  const choose = (values) => {
    for (const one of fields) one.value = values[one.name];
    const names = values.assist.split("+");
    for (const box of boxes) box.checked = names.includes(box.value);
  };
  const defaults = choices();

  // The address holds what differs from the page as it comes, so that it can be kept and passed on.
  const fromAddress = () => {
    const given = new URLSearchParams(location.hash.slice(1));
    choose(Object.fromEntries(Object.entries(defaults).map(([key, value]) => [key, given.get(key) ?? value])));
  };
  const toAddress = () => {
    const changed = Object.entries(choices()).filter(([key, value]) => value !== defaults[key]);
    history.replaceState(null, "", changed.length ? `#${new URLSearchParams(changed)}` : location.pathname);
  };

  // On a small screen the controls are folded away, so that what they lead to is in sight.
  if (matchMedia("(max-width: 720px)").matches) for (const group of form.querySelectorAll("details")) group.open = false;

  // What a slider writes, and where it stands for what is written: units, and powers of ten from one end to the other.
  const SCALES = {
    rate: { units: [["Gbit/s", 1e9], ["Mbit/s", 1e6], ["kbit/s", 1e3], ["bit/s", 1]], from: 4, to: 9 },
    duration: { units: [["s", 1], ["ms", 1e-3], ["us", 1e-6], ["µs", 1e-6]], from: -3, to: 1, zero: "0 s" },
    packets: { units: [["packets", 1], ["packet", 1]], from: 0, to: 3.3, whole: true },
  };
  const STEPS = 200;
  const written = (scale, step) => {
    if (scale.zero && step <= 0) return scale.zero;
    const value = Number((10 ** (scale.from + ((scale.to - scale.from) * step) / STEPS)).toPrecision(2));
    const number = scale.whole ? Math.round(value) : value;
    const [unit, factor] = scale.units.find(([, one]) => number >= one * 0.999999) ?? scale.units.at(-1);
    return `${Number((number / factor).toPrecision(3))} ${unit}`;
  };
  const stepOf = (scale, words) => {
    const parts = /^([\d.,]+)\s*(\S+)/.exec(words.trim());
    const factor = scale.units.find(([unit]) => unit === parts?.[2])?.[1];
    const value = factor * Number(parts?.[1].replaceAll(",", ""));
    if (Number.isNaN(value)) return 0;
    return ((Math.log10(Math.max(value, 1e-12)) - scale.from) / (scale.to - scale.from)) * STEPS;
  };
  const sliders = [...form.querySelectorAll("input[type=range]")];
  for (const slider of sliders) {
    Object.assign(slider, { min: 0, max: STEPS, step: 1 });
    slider.addEventListener("input", () => { field(slider.dataset.of).value = written(SCALES[slider.dataset.writes], slider.valueAsNumber); });
  }

  // What depends on other controls: presets show what they have, and one of interruption and overlap has no meaning.
  const arrange = (moved) => {
    for (const which of ["old", "new"]) {
      const { dataset } = field(`${which}.preset`).selectedOptions[0];
      for (const key of ["rate", "delay", "queue"]) field(`${which}.${key}`).placeholder = dataset[key];
    }
    const makes = field("style").value === "make-before-break";
    for (const [name, off] of [["interruption", makes], ["overlap", !makes]]) {
      field(name).disabled = off;
      form.querySelector(`[data-of="${name}"]`).disabled = off;
    }
    for (const slider of sliders) {
      const { value, placeholder } = field(slider.dataset.of);
      if (slider !== moved) slider.value = stepOf(SCALES[slider.dataset.writes], value || placeholder || "");
    }
  };

  const show = async (answer) => {
    by("trouble").hidden = !answer.error;
    by("trouble").textContent = [answer.error, answer.hint && `hint: ${answer.hint}`].filter(Boolean).join("\n");
    by("results").classList.toggle("stale", Boolean(answer.error));
    by("scenario").textContent = answer.scenario ?? "";
    by("commands").textContent = answer.commands?.join("\n") ?? "";
    if (answer.error) return;
    [...by("sides").children].forEach((section, index) => {
      const side = answer.sides[index];
      section.hidden = !side;
      if (!side) return;
      section.querySelector("h2").textContent = side.title;
      section.querySelector(".digest").textContent = side.digest;
      section.querySelector(".verdict").replaceChildren(...side.verdict.map((sentence) => {
        const paragraph = document.createElement("p");
        paragraph.textContent = sentence;
        return paragraph;
      }));
    });
    await redraw(answer);
  };

  // What somebody was looking at stays in sight, and hidden curves stay hidden.
  const redraw = async ({ drawn, curves }) => {
    const before = viewer.graphs[0];
    const zoomed = before && !viewer.view ? [before.from, before.to] : null;
    const hidden = new Map(viewer.graphs.map((graph) =>
      [graph.figure.place, new Set([...graph.hidden].map((index) => graph.figure.series[index].name))]));
    const named = drawn.views.find((view) => view.label === viewer.view?.label);
    await viewer.draw(drawn, curves, zoomed ? null : named ?? drawn.views[drawn.open]);
    for (const graph of viewer.graphs) graph.hide(hidden.get(graph.figure.place) ?? new Set());
    if (zoomed) viewer.graphs[0]?.move(...zoomed);
  };

  // One run is under way at most. Of what is chosen meanwhile the last counts.
  let underWay = null;
  let changedAt = null;
  const run = async () => {
    const since = changedAt;
    changedAt = null;
    underWay = new AbortController();
    const { signal } = underWay;
    try {
      const headers = { "Content-Type": "application/json" };
      const response = await fetch("run", { method: "POST", headers, body: JSON.stringify(choices()), signal });
      if (!response.ok) throw new Error(await response.text());
      await show(await response.json());
    } catch (error) {
      if (!signal.aborted) await show({ error: `careof does not answer: ${error.message}`, hint: "is careof serve still running?" });
    }
    underWay = null;
    if (changedAt !== null) return run();
    // Behind the frame in which the graphs are drawn.
    return requestAnimationFrame(() => {
      const took = performance.now() - since;
      by("took").textContent = `Drawn ${Math.round(took)} ms after the last change.`;
      Object.assign(document.body.dataset, { drawn: underWay ? "no" : "yes", took });
    });
  };
  const changed = (moved) => {
    arrange(moved);
    toAddress();
    document.body.dataset.drawn = "no";
    changedAt ??= performance.now();
    if (!underWay) return run();
    const late = underWay;
    return setTimeout(() => { if (late === underWay && changedAt !== null) late.abort(); }, PATIENCE_MS);
  };

  form.addEventListener("input", (event) => changed(event.target));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => changed()));
  for (const button of form.querySelectorAll("[data-assists]")) {
    button.addEventListener("click", () => {
      choose({ ...choices(), assist: button.dataset.assists });
      changed();
    });
  }
  for (const button of document.querySelectorAll("[data-copies]")) {
    const words = button.textContent;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(by(button.dataset.copies).textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = words; }, 1500);
    });
  }
  addEventListener("hashchange", () => {
    fromAddress();
    changed();
  });
  fromAddress();
  changed();
})();
