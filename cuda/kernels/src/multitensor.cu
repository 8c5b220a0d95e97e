// Kernels over lists of tensors (multi-tensor apply): one launch does work that would otherwise
// take a launch per parameter. The lists lie in device memory and hold offsets, not addresses, so
// one list serves all agents.
#include "half.cuh"
#include "scaler.cuh"

// GradPiece is a piece of the gradient to finish. It was computed in rows of c numbers with
// padding: in place, as float32, or in 16 bits in the arena. Its parameters and its destination in
// the gradient are contiguous.
struct GradPiece {
  i64 from, to, weights; // offsets in numbers; weights is negative if there is no weight decay
  int n, c, padded;      // n is a multiple of c
  int kind, scaled;      // scaled: was multiplied by the loss scale
  float decay;
};

#define IN_PLACE 0
#define FROM_FLOAT32 1
#define FROM_HALF 2

// finished returns the final value of a number, which may not be finite.
__device__ inline float finished(float g, float by, float decay, const float *weights, i64 i, bool *bad) {
  *bad = *bad || not_finite(g);
  g = g * by;
  return weights ? g + decay * weights[i] : g;
}

// finish_fours finishes a piece whose source is contiguous, four numbers at a time. Several loads
// are in flight before the first is used.
template <class T> __device__ inline void finish_fours(float *to, const T *from, const float *weights, int n, float by,
                                                       float decay, bool *bad) {
  constexpr int U = 4;
  for (int begin = 4 * threadIdx.x; begin < n; begin += 4 * U * blockDim.x) {
    Quad<T> g[U];
    Four w[U];
#pragma unroll
    for (int u = 0; u < U; u++) {
      const int i = begin + 4 * u * (int)blockDim.x;
      if (i < n) g[u] = load_quad(from + i);
      if (i < n && weights) w[u] = load4(weights + i);
    }
#pragma unroll
    for (int u = 0; u < U; u++) {
      const int i = begin + 4 * u * (int)blockDim.x;
      if (i >= n) break;
      Four out;
#pragma unroll
      for (int j = 0; j < 4; j++)
        out.v[j] = finished(to_float(g[u].v[j]), by, decay, weights ? w[u].v : nullptr, j, bad);
      store4(to + i, out);
    }
  }
}

template <class T> __device__ inline void finish_rows(float *to, const T *from, const float *weights,
                                                      const GradPiece &e, float by, bool *bad) {
  if (e.c == e.padded && e.n % 4 == 0 && aligned16(address(to) | address(weights)) &&
      address(from) % (4 * sizeof(T)) == 0) {
    finish_fours(to, from, weights, e.n, by, e.decay, bad);
    return;
  }
  for (int i = threadIdx.x; i < e.n; i += blockDim.x) {
    const int row = i / e.c;
    to[i] = finished(to_float(from[row * e.padded + (i - row * e.c)]), by, e.decay, weights, i, bad);
  }
}

// finish_gradient: grads = source·inverse of the scaler + decay·params, one piece of the list per
// block. The scaler, which may be null, records non-finite numbers.
template <class T> __device__ inline void finish_gradient(float *grads, const u8 *arena, const float *params,
                                                          const GradPiece *list, Scaler *scaler) {
  const GradPiece e = list[blockIdx.x];
  const float by = scaler && e.scaled ? scaler->inverse : 1.0f;
  float *to = grads + e.to;
  const float *weights = e.weights >= 0 ? params + e.weights : nullptr;
  bool bad = false;
  if (e.kind == FROM_HALF)
    finish_rows(to, (const T *)arena + e.from, weights, e, by, &bad);
  else
    finish_rows(to, e.kind == IN_PLACE ? to : (const float *)arena + e.from, weights, e, by, &bad);
  if (scaler) report_nonfinite(scaler, bad);
}

KERNEL(256)
finish_gradient_f32(float *grads, const u8 *arena, const float *params, const GradPiece *list, Scaler *scaler) {
  finish_gradient<float>(grads, arena, params, list, scaler);
}
KERNEL(256)
finish_gradient_f16(float *grads, const u8 *arena, const float *params, const GradPiece *list, Scaler *scaler) {
  finish_gradient<Half>(grads, arena, params, list, scaler);
}
KERNEL(256)
finish_gradient_bf16(float *grads, const u8 *arena, const float *params, const GradPiece *list, Scaler *scaler) {
  finish_gradient<BFloat>(grads, arena, params, list, scaler);
}

// Move updates the moving average in a buffer with a·x.
struct Move {
  i64 x, buffer;
  double a;
  i64 n;
};

// move_averages: buffer = (1-momentum)·buffer + momentum·(a·x) in float64, rounded once at the end,
// one list entry per block.
KERNEL(256) move_averages(float *buffers, const float *arena, const float *momentum, const Move *list) {
  const Move e = list[blockIdx.x];
  const double m = (double)momentum[0];
  for (i64 i = threadIdx.x; i < e.n; i += blockDim.x) {
    float *y = buffers + e.buffer + i;
    *y = (float)((1.0 - m) * (double)*y + m * (e.a * (double)arena[e.x + i]));
  }
}

// Squares is a range of numbers whose squares one warp sums: a block of dot_blocks (vector.cuh).
struct Squares {
  i64 from, n;
};

// sum_squares: part[k] = Σ x² of range k, in the summation order of dot_blocks.
KERNEL(128) sum_squares(double *part, const float *params, const Squares *list, int pieces) {
  const int piece = (int)(thread_index() / WARP), lane = threadIdx.x % WARP;
  if (piece >= pieces) return;
  const Squares e = list[piece];
  const float *x = params + e.from;
  double s = 0.0;
#pragma unroll 8
  for (i64 i = lane; i < e.n; i += WARP) s = s + (double)x[i] * (double)x[i];
#pragma unroll
  for (int half = WARP / 2; half > 0; half /= 2) s = s + __shfl_down_sync(ALL_LANES, s, half);
  if (lane == 0) part[piece] = s;
}

// Penalty is a term of a loss: scale·Σ of consecutive parts, in order.
struct Penalty {
  int first, parts;
  double scale;
};

// add_penalties: out = (..((start + p₁) + p₂) ..) with the penalties of a list, each rounded before
// it is added. out may be start. It runs as one block: each thread computes a penalty, then one
// thread adds them.
KERNEL(256) add_penalties(float *out, const float *start, const double *part, const Penalty *list, int penalties) {
  __shared__ float terms[256];
  float total = *start;
  for (int begin = 0; begin < penalties; begin += blockDim.x) {
    const int k = begin + threadIdx.x;
    if (k < penalties) {
      const Penalty e = list[k];
      double s = 0.0;
#pragma unroll 8
      for (int i = 0; i < e.parts; i++) s = s + part[e.first + i];
      terms[threadIdx.x] = (float)(e.scale * s);
    }
    __syncthreads();
    if (threadIdx.x == 0)
      for (int i = 0; i < (int)blockDim.x && begin + i < penalties; i++) total = total + terms[i];
    __syncthreads();
  }
  if (threadIdx.x == 0) *out = total;
}
