// Softmax, cross entropy and scores. Half a warp handles a row of logits, matching the CPU's
// sixteen partial sums: exponential j is added to the sum of lane j mod 16, and the sums are added
// in a tree. Rows are summed in pieces of 4096, one after the other.
#include "loss.cuh"

KERNEL(128)
softmax_cross_entropy(double *row_loss, float *dlogits, const float *logits, const float *labels, u32 *bad, int rows,
                      int m, int n, i64 stride, double s) {
  softmax_cross_entropy_of(GridBlock(), row_loss, dlogits, logits, labels, bad, rows, m, n, stride, s);
}

// softmax_cross_entropy_mixed: softmax_cross_entropy of one agent, whose rows have two labels. A row
// of labels has three numbers: two classes, and the weight of the first.
KERNEL(128)
softmax_cross_entropy_mixed(double *row_loss, float *dlogits, const float *logits, const float *labels, u32 *bad, int m,
                            int n, double s) {
  cross_entropy_of<TwoClasses>(GridBlock(), row_loss, dlogits, logits, labels, bad, m, m, n, 0, s);
}

// score: the cross entropy of each row, and in hits[0] and hits[1] how many labels have the largest
// logit, or one of the five largest; among equal logits the first counts. A row with a NaN is not a
// hit.
KERNEL(128) score(double *row_loss, u32 *hits, const float *logits, const float *labels, u32 *bad, int m, int n) {
  const int lane = threadIdx.x % LANES;
  const int row = (int)(thread_index() / LANES);
  const bool mine = row < m;
  const float *x = logits + (i64)(mine ? row : 0) * n;
  int c = mine ? class_of(labels, row, n, bad, lane) : -1;
  float top = top_of(x, n, lane);
  double sum = exponentials((float *)0, x, n, (double)top, lane);
  float v = c < 0 ? 0.0f : x[c];
  int before = 0;
  for (int j = lane; j < n; j += LANES) {
    if (x[j] != x[j]) before += 1 << 20; // n < 2^20, or the loss is NaN and the hits do not matter
    if (x[j] > v || (x[j] == v && j < c)) before++;
  }
#pragma unroll
  for (int half = LANES / 2; half > 0; half /= 2) before += __shfl_xor_sync(ALL_LANES, before, half, LANES);
  if (c < 0 || lane != 0) return;
  row_loss[row] = logarithm(sum) - ((double)x[c] - (double)top);
  if (before == 0) atomicAdd(&hits[0], 1u);
  if (before < 5) atomicAdd(&hits[1], 1u);
}

// score_sums: sums = {sum of the rows' losses, hits} as float32; resets the hits to zero.
KERNEL(32) score_sums(float *sums, const double *loss, u32 *hits) {
  if (threadIdx.x != 0) return;
  sums[0] = (float)*loss;
  sums[1] = (float)hits[0];
  sums[2] = (float)hits[1];
  hits[0] = hits[1] = 0;
}
