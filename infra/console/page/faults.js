// The switch for the faults that the local stack makes between clients and its gateway.

const PATH = "/_local/faults";

const form = document.getElementById("faults");
const [isOn, seed] = form.querySelectorAll("input");
const shown = document.getElementById("faulty");

const sum = (counts) => Object.values(counts).reduce((all, count) => all + count, 0);

function draw(answer) {
  isOn.checked = answer.seed !== null;
  if (answer.seed !== null && document.activeElement !== seed) seed.value = answer.seed;
  shown.hidden = answer.seed === null;
  shown.textContent = `faults by seed ${answer.seed}: ${sum(answer.made)} of ${sum(answer.requests)} requests`;
}

async function ask(request) {
  const response = await fetch(PATH, request).catch(() => null);
  if (response?.ok) draw(await response.json());
}

const set = () => ask({ method: "PUT", body: JSON.stringify({ seed: isOn.checked ? seed.valueAsNumber : null }) });

form.addEventListener("submit", (event) => event.preventDefault());
isOn.addEventListener("change", set);
seed.addEventListener("change", () => { if (isOn.checked && seed.reportValidity()) set(); });

/** Shows the switch where there is one, as it is now. */
export function look(deployment) {
  form.hidden = !deployment.has_faults;
  if (deployment.has_faults) ask();
}
