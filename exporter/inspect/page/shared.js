// What every page of ours needs. All names come from a file that nobody vouches for: they reach the page
// as text nodes and attribute values alone.
"use strict";

const page = JSON.parse(document.getElementById("data").textContent);
const bar = document.getElementById("bar"), tip = document.getElementById("tip");

const counted = (n, noun) => n + " " + noun + (n === 1 ? "" : "s");

function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// ---- tips ----

function hideTip() {
  tip.hidden = true;
}
// The first line is the heading; empty lines are left out.
function showTip(event, lines) {
  const [title, ...others] = lines.filter(Boolean), heading = document.createElement("b");
  heading.textContent = title;
  tip.replaceChildren(heading, ...others.map((line) => "\n" + line));
  tip.hidden = false;
  tip.style.left = tip.style.top = "0";
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = Math.max(0, Math.min(event.clientX + 14, innerWidth - width - 4)) + "px";
  tip.style.top = (event.clientY + 16 + height < innerHeight ? event.clientY + 16 : event.clientY - height - 8) + "px";
}

// ---- the bar ----

function button(text, title, act, isPressed) {
  const b = document.createElement("button");
  b.textContent = text;
  b.title = title;
  if (isPressed !== undefined) b.setAttribute("aria-pressed", isPressed);
  b.addEventListener("click", act);
  return b;
}
function together(...elements) {
  const span = document.createElement("span");
  span.append(...elements);
  return span;
}
