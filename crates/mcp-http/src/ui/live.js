// Keeps the page up to date: asks for it again, and puts in what has changed. Without this script it reloads itself.
'use strict';

const EVERY_MS = 2000;
const bar = document.getElementById('bar');
const state = document.createElement('span');
state.className = 'faint';
const button = document.createElement('button');
button.type = 'button';
let paused = false;
let waiting = count(document);

// The number of calls that wait for an approval.
function count(page) {
  return Number(page.querySelector('#pending [data-count]')?.dataset.count ?? 0);
}

// A short tone. Browsers allow it once somebody has clicked on the page.
function beep() {
  try {
    const audio = new AudioContext();
    const tone = audio.createOscillator();
    tone.frequency.value = 880;
    tone.connect(audio.destination);
    tone.start();
    tone.stop(audio.currentTime + 0.15);
    tone.onended = () => audio.close();
  } catch {
    // No sound here; the badge is enough.
  }
}

// The address of this page without the result of a form, which is told once.
function address() {
  const query = new URLSearchParams(location.search);
  query.delete('said');
  return location.pathname + (query.size ? `?${query}` : '');
}

function say(text) {
  if (state.textContent !== text) state.textContent = text;
}

button.addEventListener('click', () => {
  paused = !paused;
  show();
});

function show() {
  button.textContent = paused ? 'Go on updating' : 'Stop updating';
  say(paused ? 'Not updated' : 'Updated every 2 seconds');
}

async function update() {
  // A page in the background goes on where approvals are shown: its tone is what calls a person.
  if (paused || (document.hidden && !document.getElementById('pending'))) return;
  let fresh;
  try {
    const answer = await fetch(address(), { credentials: 'same-origin', cache: 'no-store' });
    if (answer.status === 401) {
      // Signed out: the form to sign in.
      location.assign(address());
      return;
    }
    if (!answer.ok) throw new Error(String(answer.status));
    fresh = new DOMParser().parseFromString(await answer.text(), 'text/html');
  } catch {
    say('Not updated: the server does not answer');
    return;
  }
  if (paused) return;
  show();
  const now = count(fresh);
  if (now > waiting) beep();
  waiting = now;
  for (const section of document.querySelectorAll('[data-live]')) {
    const next = fresh.getElementById(section.id);
    if (!next || next.innerHTML === section.innerHTML) continue;
    // What somebody types into a form stays until they are done.
    if (section.contains(document.activeElement) && document.activeElement.matches('input')) continue;
    const focused = section.contains(document.activeElement) ? document.activeElement.id : '';
    const typed = [...section.querySelectorAll('input[id]')].filter(input => input.value !== input.defaultValue);
    const opened = [...section.querySelectorAll('details[id][open]')];
    section.replaceChildren(...next.childNodes);
    for (const { id, value } of typed) {
      const input = document.getElementById(id);
      if (input) input.value = value;
    }
    for (const { id } of opened) document.getElementById(id)?.setAttribute('open', '');
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  }
}

bar.append(button, state);
show();
setInterval(update, EVERY_MS);
