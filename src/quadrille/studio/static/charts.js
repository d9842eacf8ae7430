// Charts of the product, drawn by Vega under a strict policy: expressions are interpreted, and no style is put in.
import { isDark } from "./base.js";

const INK = { "#1f1f1f": "#e7eaec", "#444444": "#a1abb4", "#5f5f5f": "#8f9aa4", "#000000": "#e7eaec", black: "#e7eaec", "#ececec": "#2d343a", "#d9d9d9": "#3a4248", white: "#1a1e22", "#ffffff": "#1a1e22", "#0072b2": "#56b4e9" };

// In the dark the same picture has light ink; the rows that it shows are left as they are.
function inked(value, key) {
  if (key === "values" || key === "datasets") return value;
  if (Array.isArray(value)) return value.map((each) => inked(each));
  if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, inked(each, name)]));
  return typeof value === "string" ? (INK[value.toLowerCase()] ?? value) : value;
}

function picture(spec) {
  const shown = { ...(isDark() ? inked(spec) : spec), padding: 4 };
  const title = shown.title?.text ? { ...shown.title, subtitle: undefined } : shown.title; // the sentence stands below
  const config = { ...shown.config, background: "transparent" };
  if (isDark()) {
    const soft = { labelColor: "#e7eaec", titleColor: "#e7eaec" };
    config.axis = { ...config.axis, ...soft };
    config.legend = { ...config.legend, ...soft };
    config.header = { ...config.header, ...soft };
    config.title = { ...config.title, color: "#e7eaec", subtitleColor: "#a1abb4" };
    config.text = { color: "#e7eaec", ...config.text };
  }
  return { ...shown, title, config };
}

const views = new Map();
async function draw(place) {
  const spec = JSON.parse(document.getElementById(place.dataset.spec).textContent);
  const options = { ast: true, defaultStyle: false, tooltip: { disableDefaultStyle: true }, actions: false, renderer: "svg", mode: "vega-lite" };
  try {
    views.get(place)?.finalize();
    const made = await quadrilleVega.vegaEmbed(place, picture(spec), options);
    views.set(place, made);
    place.querySelector("svg")?.setAttribute("aria-hidden", "true"); // its place is described as a whole
    place.classList.add("drawn");
  } catch (error) {
    place.textContent = "This chart could not be drawn. Its table is below.";
    console.warn("chart", String(error));
  }
}

async function save(button) {
  const made = views.get(document.getElementById(button.dataset.png));
  if (!made) return;
  const link = document.createElement("a");
  link.href = await made.view.toImageURL("png", 2);
  link.download = `${button.dataset.name}.png`;
  link.click();
}

const all = () => document.querySelectorAll(".chart[data-spec]").forEach(draw);
all();
addEventListener("theme", all);
document.addEventListener("click", (event) => { const button = event.target.closest("button[data-png]"); if (button) save(button); });
