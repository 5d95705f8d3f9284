// The posterior of a bias from counts, m ~ Beta(α + r, β + f), and its central interval:
//   I_m(a, b) = ∫_0^m t^(a-1) (1-t)^(b-1) dt / B(a, b)
const LANCZOS = [676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
  12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7];

function logGamma(z) {
  if (z < 0.5) return Math.log(Math.PI / Math.sin(Math.PI * z)) - logGamma(1 - z);
  const t = z + 6.5;
  const sum = LANCZOS.reduce((total, c, i) => total + c / (z + i), 0.99999999999980993);
  return 0.5 * Math.log(2 * Math.PI) + (z - 0.5) * Math.log(t) - t + Math.log(sum);
}

// The continued fraction of I_m, by Lentz; it converges fast below the mean.
function fraction(m, a, b) {
  let [c, d] = [1, 1 / (1 - ((a + b) * m) / (a + 1))];
  let value = d;
  for (let k = 1; k < 10_000; k += 1) {
    const even = (k * (b - k) * m) / ((a + 2 * k - 1) * (a + 2 * k));
    d = 1 / (1 + even * d);
    c = 1 + even / c;
    value *= c * d;
    const odd = (-(a + k) * (a + b + k) * m) / ((a + 2 * k) * (a + 2 * k + 1));
    d = 1 / (1 + odd * d);
    c = 1 + odd / c;
    value *= c * d;
    if (Math.abs(c * d - 1) < 1e-12) break;
  }
  return value;
}

function betaBelow(m, a, b) {
  if (m <= 0) return 0;
  if (m >= 1) return 1;
  const front = Math.exp(a * Math.log(m) + b * Math.log1p(-m) + logGamma(a + b) - logGamma(a) - logGamma(b));
  return m < (a + 1) / (a + b + 2) ? (front * fraction(m, a, b)) / a : 1 - (front * fraction(1 - m, b, a)) / b;
}

function betaQuantile(p, a, b) {
  let [low, high] = [0, 1];
  for (let i = 0; i < 44; i += 1) {
    const middle = (low + high) / 2;
    if (betaBelow(middle, a, b) < p) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

// For one action: count, sum and sum of squares of the observations -> mean and 95 % interval.
function byCounts({ n, sum, squares }, prior) {
  if (prior) {
    const [a, b] = [prior[0] + sum, prior[1] + n - sum];
    return { mean: a / (a + b), low: betaQuantile(0.025, a, b), high: betaQuantile(0.975, a, b) };
  }
  if (!n) return { mean: null, low: null, high: null };
  const mean = sum / n;
  const error = n > 1 ? 1.96 * Math.sqrt(Math.max(0, squares / n - mean * mean) / (n - 1)) : null;
  return { mean, low: error === null ? null : mean - error, high: error === null ? null : mean + error };
}
