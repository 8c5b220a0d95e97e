// Embeddings of tokens and their gradients. Tokens are float32 numbers. One that is not in the
// vocabulary gives a row of NaN, and its row has no part in the gradient.
//
// The gradient sums the rows of each token in ascending order, in float64, as the CPU does: no
// result depends on the order of blocks. sort_tokens makes the order of the rows by token.
#include "base.cuh"

#define SORT_THREADS 256
#define SORT_ROWS 32 // kernels.sortRows
#define SORT_PARTS (SORT_THREADS / SORT_ROWS)

// token_of returns the token of a row, or -1 if it is not one of v.
__device__ inline int token_of(const float *ids, i64 row, int v) {
  const float id = ids[row];
  const int token = id >= 0.0f && id < (float)v ? (int)id : -1;
  return token >= 0 && (float)token == id ? token : -1;
}

// embed: y = tokens[ids] + positions[place of the row in its window]. positions may be null. With an
// at there is one window, whose first row has the place *at of `places`.
KERNEL(256)
embed(float *y, const float *ids, const float *tokens, const float *positions, const float *at, i64 m, int v, int c,
      int t, int places) {
  const i64 i = thread_index();
  if (i >= m * c) return;
  const i64 row = i / c;
  const int column = (int)(i - row * c), token = token_of(ids, row, v);
  i64 place = at ? row : row % t;
  if (at) {
    const float first = *at;
    place = first >= 0.0f && first <= (float)(places - m) ? place + (i64)first : -1;
  }
  if (token < 0 || place < 0) {
    y[i] = quiet_nan();
    return;
  }
  const float x = tokens[(i64)token * c + column];
  y[i] = positions ? x + positions[place * c + column] : x;
}

// sort_tokens: order[k] is the k-th row, by token and then by row. A row counts the rows before it:
// each of SORT_PARTS threads compares it with a part of them. Rows without a token come first.
KERNEL(SORT_THREADS) sort_tokens(u32 *order, const float *ids, int m, int v) {
  __shared__ int part[SORT_THREADS], counted[SORT_THREADS];
  const int thread = (int)threadIdx.x, lane = thread % SORT_ROWS, first = thread - lane;
  const i64 row = (i64)blockIdx.x * SORT_ROWS + lane;
  const int mine = row < m ? token_of(ids, row, v) : -1;
  int before = 0;
  for (int begin = 0; begin < m; begin += SORT_THREADS) {
    __syncthreads();
    const int from = begin + thread;
    if (from < m) part[thread] = token_of(ids, from, v);
    __syncthreads();
    const int end = m - begin < first + SORT_ROWS ? m - begin : first + SORT_ROWS;
#pragma unroll 8
    for (int k = first; k < end; k++) before += part[k] < mine || (part[k] == mine && begin + k < row);
  }
  counted[thread] = before;
  __syncthreads();
  if (first != 0 || row >= m) return;
  for (int k = 1; k < SORT_PARTS; k++) before += counted[lane + k * SORT_ROWS];
  order[before] = (u32)row;
}

// first_row returns the first place in order whose token is at least a token.
__device__ inline int first_row(const u32 *order, const float *ids, int m, int v, int token) {
  int from = 0, to = m;
  while (from < to) {
    const int middle = (from + to) / 2;
    if (token_of(ids, order[middle], v) < token)
      from = middle + 1;
    else
      to = middle;
  }
  return from;
}

// embed_grad_tokens: row `token` of dtokens is the sum of the rows of dy with that token, rounded,
// plus base. base may be null. blockIdx.x is the token.
KERNEL(128)
embed_grad_tokens(float *dtokens, const u32 *order, const float *ids, const float *dy, const float *base, int m, int v,
                  int c) {
  const int token = (int)blockIdx.x;
  const int from = first_row(order, ids, m, v, token), to = first_row(order, ids, m, v, token + 1);
  for (int column = (int)threadIdx.x; column < c; column += (int)blockDim.x) {
    double sum = 0.0;
#pragma unroll 4
    for (int k = from; k < to; k++) sum = sum + (double)dy[(i64)order[k] * c + column];
    const i64 i = (i64)token * c + column;
    const float rounded = (float)sum;
    dtokens[i] = base ? rounded + base[i] : rounded;
  }
}

// embed_grad_positions: row `place` of dpositions is the sum of the rows of dy at that place of their
// window of t, and 0 from t on. blockIdx.x is the place.
KERNEL(128) embed_grad_positions(float *dpositions, const float *dy, int m, int c, int t) {
  const int place = (int)blockIdx.x;
  for (int column = (int)threadIdx.x; column < c; column += (int)blockDim.x) {
    double sum = 0.0;
    if (place < t) {
#pragma unroll 4
      for (int row = place; row < m; row += t) sum = sum + (double)dy[(i64)row * c + column];
    }
    dpositions[(i64)place * c + column] = (float)sum;
  }
}

// last_token: y is the last of the t rows of each window.
KERNEL(256) last_token(float *y, const float *x, i64 windows, int t, int c) {
  const i64 i = thread_index();
  if (i >= windows * c) return;
  const i64 window = i / c;
  y[i] = x[((window + 1) * t - 1) * c + (i - window * c)];
}
