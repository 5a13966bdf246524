//! Least squares with three parameters that cannot be negative.

use std::array::from_fn;

/// Maximum number of steps of [`refine`]; a dozen are usual.
const MOST_STEPS: usize = 80;

/// Damping beyond which no step reduces the sum any more.
const MOST_DAMPING: f64 = 1e12;

/// Three parameters.
pub(super) type Parameters = [f64; 3];

/// One equation: its coefficients and its right-hand side.
pub(super) type Equation = (Parameters, f64);

/// The parameters ≥ 0 for which the sum of squared residuals is smallest. Each of the seven sets of parameters above 0
/// is solved on its own. The best of the solutions without a negative parameter is the best of all, because the sum is
/// convex.
pub(super) fn non_negative(equations: &[Equation]) -> Parameters {
    let mut scale = [0.0; 3];
    for (row, _) in equations {
        for (sum, coefficient) in scale.iter_mut().zip(row) {
            *sum += coefficient * coefficient;
        }
    }
    // Columns are scaled to length 1, because n (n - 1) is a million times 1 for many clients.
    let scale = scale.map(|sum| if sum > 0.0 { sum.sqrt() } else { 1.0 });
    let (mut gram, mut right) = ([[0.0; 3]; 3], [0.0; 3]);
    for (row, target) in equations {
        for i in 0..3 {
            right[i] += row[i] / scale[i] * target;
            for j in 0..3 {
                gram[i][j] += row[i] / scale[i] * row[j] / scale[j];
            }
        }
    }
    let mut best = [0.0; 3];
    let mut least = 0.0; // with all parameters 0, minus the squares of the targets
    for set in 1..8_u8 {
        let Some(found) = solve(gram, right, set) else {
            continue;
        };
        if found.iter().any(|value| *value < 0.0) {
            continue;
        }
        let mut sum = 0.0;
        for i in 0..3 {
            let product: f64 = (0..3).map(|j| gram[i][j] * found[j]).sum();
            sum += found[i] * (product - 2.0 * right[i]);
        }
        if sum < least {
            (least, best) = (sum, found);
        }
    }
    [0, 1, 2].map(|i| best[i] / scale[i])
}

/// Solves the normal equations for the parameters in `set`, with 0 for the others; `None` if they are singular.
fn solve(gram: [Parameters; 3], right: Parameters, set: u8) -> Option<Parameters> {
    let within = |i: usize| set & (1 << i) != 0;
    let mut right = from_fn(|i| if within(i) { right[i] } else { 0.0 });
    let mut left: [Parameters; 3] = from_fn(|i| {
        from_fn(|j| {
            if within(i) && within(j) {
                gram[i][j]
            } else {
                f64::from(u8::from(i == j))
            }
        })
    });
    // Gauss without pivoting: the matrix is symmetric and its diagonal is 1.
    for i in 0..3 {
        let (pivot, known) = (left[i], right[i]);
        if pivot[i] < 1e-13 {
            return None;
        }
        for (row, value) in left.iter_mut().zip(&mut right).skip(i + 1) {
            let factor = row[i] / pivot[i];
            for (entry, above) in row.iter_mut().zip(pivot) {
                *entry -= factor * above;
            }
            *value -= factor * known;
        }
    }
    for i in (0..3).rev() {
        let known: f64 = (i + 1..3).map(|j| left[i][j] * right[j]).sum();
        right[i] = (right[i] - known) / left[i][i];
    }
    Some(right)
}

/// Improves `parameters` until the sum of squared residuals stops falling: Levenberg–Marquardt, with each step limited
/// to parameters ≥ 0. `residuals` returns the residuals linearised at the parameters, as slopes and values; `None` if
/// they are undefined.
pub(super) fn refine(
    parameters: Parameters,
    residuals: impl Fn(Parameters) -> Option<Vec<Equation>>,
) -> Parameters {
    let Some(mut at) = residuals(parameters) else {
        return parameters;
    };
    let (mut parameters, mut damping) = (parameters, 1e-3);
    let squares = |at: &[Equation]| at.iter().map(|(_, r)| r * r).sum::<f64>();
    let mut least = squares(&at);
    for _ in 0..MOST_STEPS {
        let next = step(parameters, &at, damping);
        match residuals(next) {
            Some(there) if squares(&there) < least => {
                let gained = least - squares(&there);
                (parameters, at, least) = (next, there, least - gained);
                damping = (damping / 10.0).max(1e-12);
                if gained <= 1e-13 * least {
                    break;
                }
            }
            _ => damping *= 10.0,
        }
        if damping > MOST_DAMPING || least <= f64::MIN_POSITIVE {
            break;
        }
    }
    parameters
}

fn step(parameters: Parameters, at: &[Equation], damping: f64) -> Parameters {
    let dot =
        |slopes: &Parameters| -> f64 { slopes.iter().zip(parameters).map(|(s, p)| s * p).sum() };
    let mut equations: Vec<Equation> = at
        .iter()
        .map(|(slopes, residual)| (*slopes, dot(slopes) - residual))
        .collect();
    for i in 0..3 {
        let length: f64 = at.iter().map(|(slopes, _)| slopes[i] * slopes[i]).sum();
        let weight = (damping * length).sqrt();
        let mut row = [0.0; 3];
        row[i] = weight;
        equations.push((row, weight * parameters[i]));
    }
    non_negative(&equations)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consistent_equations_are_solved() {
        let rows = [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 2.0, 4.0]];
        let truth = [2.0, 3.0, 0.5];
        let equations = rows.map(|row| (row, row.iter().zip(truth).map(|(r, t)| r * t).sum()));
        let found = non_negative(&equations);
        assert!(
            found.iter().zip(truth).all(|(f, t)| (f - t).abs() < 1e-12),
            "{found:?}"
        );
    }

    #[test]
    fn negative_solutions_become_zero_and_the_rest_is_optimal() {
        // y = 1 - x at x = 0, 1, 2: the best constant is the mean, 0.
        let equations = [0.0, 1.0, 2.0].map(|x| ([1.0, x, 0.0], 2.0 - x));
        let found = non_negative(&equations);
        assert!(
            (found[0] - 1.0).abs() < 1e-12 && found[1..] == [0.0, 0.0],
            "{found:?}"
        );
    }

    #[test]
    fn singular_equations_have_no_solution() {
        for nothing in [&[][..], &[([0.0; 3], 1.0)]] {
            assert!(
                non_negative(nothing)
                    .iter()
                    .all(|value| value.abs() < 1e-300)
            );
        }
    }

    #[test]
    fn a_nonlinear_sum_of_squares_is_minimised() {
        // exp(p) = 2 and exp(q) = 0.5, for which q would be negative.
        let found = refine([3.0, 3.0, 0.0], |[p, q, _]| {
            Some(vec![
                ([p.exp(), 0.0, 0.0], p.exp() - 2.0),
                ([0.0, q.exp(), 0.0], q.exp() - 0.5),
            ])
        });
        assert!((found[0] - 2.0_f64.ln()).abs() < 1e-9, "{found:?}");
        assert!(found[1] < 1e-12, "{found:?}");
    }
}
