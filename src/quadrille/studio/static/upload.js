// A file is sent as it is, by PUT, with its progress in words; its size is looked at first.
import { say } from "./base.js";

const zone = document.querySelector(".drop");
const input = zone.querySelector('input[type="file"]');
const told = zone.querySelector("[data-told]");
const bar = zone.querySelector("progress");
const fault = zone.querySelector(".error");
const sizes = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const megabytes = (bytes) => `${sizes.format(bytes / 2 ** 20)} MiB`;

function refuse(text) {
  fault.textContent = text;
  fault.hidden = !text;
  if (text) { bar.hidden = true; told.textContent = ""; say(text); }
}

function send(file) {
  const most = Number(zone.dataset.limit);
  refuse("");
  if (file.size > most) return refuse(`The file has ${megabytes(file.size)}, and the limit is ${megabytes(most)}. Pack it (gz), convert it to Parquet, or ask the administrator for a higher limit.`);
  if (!file.size) return refuse("The file is empty. Choose another one.");
  const request = new XMLHttpRequest();
  request.open("PUT", zone.dataset.put);
  request.setRequestHeader("X-CSRF-Token", zone.dataset.csrf);
  request.setRequestHeader("X-File-Name", encodeURIComponent(file.name));
  request.setRequestHeader("Content-Type", "application/octet-stream");
  request.upload.onprogress = (event) => {
    bar.max = event.total; bar.value = event.loaded;
    told.textContent = `Sending ${file.name}: ${megabytes(event.loaded)} of ${megabytes(event.total)}`;
  };
  request.onload = () => {
    if (request.status < 300) { told.textContent = "The file is here. Looking at its columns ..."; location.assign(zone.dataset.next); return; }
    let answer = {};
    try { answer = JSON.parse(request.responseText); } catch { /* said below */ }
    refuse([answer.error, answer.do].filter(Boolean).join(" ") || `The server refused the file (${request.status}). Try again.`);
  };
  request.onerror = () => refuse("The connection was cut before the file was here. Nothing is kept of it: send it again.");
  bar.hidden = false; bar.removeAttribute("value");
  told.textContent = `Sending ${file.name} ...`;
  request.send(file);
}

input.addEventListener("change", () => input.files[0] && send(input.files[0]));
for (const name of ["dragenter", "dragover"]) zone.addEventListener(name, (event) => { event.preventDefault(); zone.classList.add("over"); });
for (const name of ["dragleave", "drop"]) zone.addEventListener(name, () => zone.classList.remove("over"));
zone.addEventListener("drop", (event) => { event.preventDefault(); const file = event.dataTransfer.files[0]; if (file) send(file); });
