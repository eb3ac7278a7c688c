const element = (id) => document.getElementById(id);
const list = element('messages'), question = element('question'), send = element('send');
let messages = [];   // of the conversation, without the system's
let running = null;  // stops the answer that is being written
let conversation = 0;

function made(node) {
  const e = document.createElement(node.tag);
  if (node.text !== undefined) e.textContent = node.text;
  if (node.start > 1) e.start = node.start;
  for (const child of node.children || []) e.append(made(child));
  return e;
}

function show(kind, text) {
  const e = document.createElement(kind === 'note' || kind === 'error' ? 'p' : 'div');
  e.className = kind === 'error' ? 'note error' : kind;
  e.textContent = text;
  list.querySelector('.hint')?.remove();
  list.append(e);
  list.scrollTop = list.scrollHeight;
  return e;
}

// Scrolls along, unless the reader has scrolled up.
function draw(place, text) {
  const follows = list.scrollHeight - list.scrollTop - list.clientHeight < 60;
  place.replaceChildren(...markdown(text).map(made));
  if (follows) list.scrollTop = list.scrollHeight;
}

function headers() {
  const key = element('key').value;
  return {'Content-Type': 'application/json', ...(key && {Authorization: 'Bearer ' + key})};
}

function body() {
  const system = element('system').value.trim();
  const request = {
    messages: [...(system ? [{role: 'system', content: system}] : []), ...messages],
    stream: true, stream_options: {include_usage: true}};
  if (element('temperature').value !== '') request.temperature = Number(element('temperature').value);
  if (element('max-tokens').value !== '') request.max_tokens = Number(element('max-tokens').value);
  return JSON.stringify(request);
}

// Calls `take` with each object of the stream.
async function read(response, take) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const {value, done} = await reader.read();
    if (done) return;
    const events = (rest + value).split('\n\n');
    rest = events.pop();
    for (const event of events)
      if (event.startsWith('data: ') && event !== 'data: [DONE]') take(JSON.parse(event.slice(6)));
  }
}

async function answer(place, take, signal) {
  const response = await fetch('v1/chat/completions', {method: 'POST', headers: headers(), body: body(), signal});
  if (!response.ok) throw new Error((await response.json()).error.message);
  await read(response, (object) => {
    if (object.error) throw new Error(object.error.message);
    take(object);
  });
}

function speed(usage, seconds) {
  const rate = seconds > 0 ? ', ' + (usage.completion_tokens / seconds).toFixed(0) + ' a second' : '';
  return usage.completion_tokens + ' tokens' + rate;
}

async function ask(text) {
  const mine = conversation;
  messages.push({role: 'user', content: text});
  show('user', text);
  const place = show('assistant waits', '');
  running = new AbortController();
  send.textContent = 'Stop';
  let said = '', note = '', began = 0;
  try {
    await answer(place, (object) => {
      const choice = object.choices[0];
      if (choice?.delta.content) {
        began ||= performance.now();
        draw(place, said += choice.delta.content);
      }
      if (choice?.finish_reason === 'length') note = 'The answer was cut: its limit or the context is full. ';
      if (object.usage) note += speed(object.usage, (performance.now() - began) / 1000);
    }, running.signal);
  } catch (error) {
    if (error.name === 'AbortError') note = 'Stopped.';
    else if (mine === conversation) show('error', error.message);
  }
  if (mine !== conversation) return;
  place.classList.remove('waits');
  if (said) messages.push({role: 'assistant', content: said});
  else messages.pop(), place.remove();  // the question may be asked again
  if (note) show('note', note);
  running = null;
  send.textContent = 'Send';
}

function begin() {
  ++conversation;
  running?.abort();
  running = null;
  send.textContent = 'Send';
  messages = [];
  list.replaceChildren();
  question.focus();
}

function grow() {
  question.style.height = 'auto';
  question.style.height = question.scrollHeight + 2 + 'px';
}

async function name() {
  try {
    const response = await fetch('v1/models', {headers: headers()});
    if (!response.ok) return;
    const model = (await response.json()).data[0];
    element('model').textContent = document.title = model.id;
    element('model').title = 'context of ' + model.context_length + ' tokens';
  } catch {
    show('error', 'The server does not answer.');
  }
}

element('ask').addEventListener('submit', (event) => {
  event.preventDefault();
  if (running) return running.abort();
  const text = question.value.trim();
  if (!text) return;
  question.value = '';
  grow();
  ask(text);
});
question.addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  if (!running) element('ask').requestSubmit();
});
question.addEventListener('input', grow);
element('new').addEventListener('click', begin);
element('key').addEventListener('change', name);
element('settings').addEventListener('submit', (event) => event.preventDefault());
element('show-settings').addEventListener('click', () => {
  const hidden = element('settings').hidden = !element('settings').hidden;
  element('show-settings').setAttribute('aria-expanded', String(!hidden));
});
name();
