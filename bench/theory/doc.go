// Package theory measures the rates that the paper proves, on a problem where everything is known.
//
// A [Problem] is a sum of quadratics, one for each agent, with a known minimum, exact gradients,
// and chosen gradient noise and heterogeneity. [Settings.Run] runs an algorithm of train/algo on it
// in lockstep, in float64, over the graphs, edge processes and masks of package dist. A [Study]
// varies one quantity, such as the number of iterations, and fits the slope of a line on
// logarithmic axes; its confidence interval comes from the slopes of single seeds. [Studies] lists
// them with the paper's predictions.
//
// Errors are the mean over the iterations 0 to T-1 of |∇F(mean model)|², the quantity of the
// paper's theorems, whose random stopping iteration is uniform. Consensus errors are the mean of
// Σ_i |x_i - mean|².
package theory
