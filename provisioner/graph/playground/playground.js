"use strict";

const at = (id) => document.getElementById(id);
const endpoint = document.body.dataset.endpoint;

async function ask(query, variables, headers) {
  const response = await fetch(endpoint, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    body: JSON.stringify({ query, variables }),
  });

  return { status: response.status, text: await response.text() };
}

function callerHeaders() {
  const headers = {};
  for (const name of ["tenant", "sub-account", "Idempotency-Key"]) {
    if (at(name).value !== "") headers[name] = at(name).value;
  }

  return headers;
}

function indented(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

async function send() {
  at("status").textContent = "…";
  try {
    const variables = JSON.parse(at("variables").value.trim() || "{}");
    const { status, text } = await ask(at("query").value, variables, callerHeaders());
    at("status").textContent = status;
    at("answer").textContent = indented(text);
  } catch (error) {
    at("status").textContent = "not sent";
    at("answer").textContent = String(error);
  }
}

const schemaQuery = `{ __schema { types {
  name kind description
  fields { name description args { name type { ...t } } type { ...t } }
  inputFields { name description type { ...t } }
  enumValues { name description }
  possibleTypes { name }
} } }
fragment t on __Type { kind name ofType { kind name ofType { kind name ofType { kind name } } } }`;

function typeText(type) {
  if (type.kind === "NON_NULL") return typeText(type.ofType) + "!";
  if (type.kind === "LIST") return "[" + typeText(type.ofType) + "]";
  return type.name;
}

function fieldText(field) {
  const args = (field.args || []).map((arg) => `${arg.name}: ${typeText(arg.type)}`).join(", ");
  return field.name + (args && `(${args})`) + (field.type ? ": " + typeText(field.type) : "");
}

function element(name, text, ...children) {
  const made = document.createElement(name);
  made.textContent = text;
  made.append(...children);
  return made;
}

function described(type) {
  const lines = [];
  if (type.description) lines.push(element("p", type.description));
  for (const field of [...(type.fields || []), ...(type.inputFields || []), ...(type.enumValues || []), ...(type.possibleTypes || [])]) {
    lines.push(element("div", fieldText(field)));
    if (field.description) lines.push(element("p", field.description));
  }

  return element("details", "", element("summary", `${type.kind.toLowerCase().replace("_", " ")} ${type.name}`), ...lines);
}

function filter() {
  const wanted = at("filter").value.toLowerCase();
  for (const type of at("schema").children) {
    type.hidden = !type.textContent.toLowerCase().includes(wanted);
    type.open = wanted !== "" && !type.hidden;
  }
}

async function showSchema() {
  try {
    const { text } = await ask(schemaQuery, {}, {});
    const types = JSON.parse(text).data.__schema.types.filter((type) => !type.name.startsWith("__") && type.kind !== "SCALAR");
    at("schema").replaceChildren(...types.map(described));
  } catch (error) {
    at("schema").textContent = "The schema cannot be shown: " + error;
  }
}

at("send").addEventListener("click", send);
at("filter").addEventListener("input", filter);
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send();
});
showSchema();
