// Ranks of the search: Sphinx's own values, and design records and the changelog below all guides.
var Scorer = {
  score: ([docname, title, anchor, descr, score]) =>
    /^(adr\/|changelog)/.test(docname) ? score - 1000 : score,
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
