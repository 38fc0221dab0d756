// Requests to this page's server. The token is in the link after #, a part that browsers never send.
const KEPT = "tightrope-token";

function token() {
  const said = location.hash.slice(1);
  if (said) {
    sessionStorage.setItem(KEPT, said);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem(KEPT) ?? "";
}

const TOKEN = token();

export async function ask(what, said = null) {
  let answer;
  try {
    answer = await fetch(`/api/${what}`, {
      method: "POST",
      headers: {"content-type": "application/json", "x-tightrope-token": TOKEN},
      body: JSON.stringify(said),
    });
  } catch {
    return {problem: "The studio has stopped. Start it again with: tightrope studio"};
  }
  if (answer.status === 403) return {problem: await answer.text(), shut: true};
  return answer.json();
}
