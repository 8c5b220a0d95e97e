// Convolutions of 1×1, and with stride 1 the gradients of their inputs, in 16 bits, as products of
// matrices c[m×n] = a[m×k]·b, whose rows are pixels. They compute also what the neighbouring batch
// normalisations (norm.cu) would do in passes of their own:
//
//   Input   While a product loads a, it computes a from what the normalisation reads: the map with
//           ReLU, the sum with a residual, or the gradient. The blocks of the first columns of c
//           store a, for other readers.
//   Output  While a product stores c, it computes the sums over the rows of c that the next
//           normalisation needs: the moments, or the sums of its gradient, also after the sum with
//           another gradient and the ReLU mask.
//
// The formulas are those of norm.cu, so a and what is stored have the same bits. c is the sum of the
// products in float32, rounded once, in the order of the tensor cores. Σ x and Σ x² of the moments
// are taken relative to the first row of a block, over at most 64 numbers in float32; then they are
// added in float64, where the square of the mean costs a part of the digits: relative to the
// variance, the error is at most 64·2⁻²⁴ + 2⁻⁵⁰·mean²/variance. In 16 bits mean²/variance is at most
// 2²² unless nearly all numbers of a column are equal, and then Σ x and Σ x² are exact.
//
// A block computes tiles of 64 rows and N columns of c, one below the other, in steps of 64 products.
// Each of its 8 warps has 32 rows and N/4 columns. Loads of the next step are in flight while the
// tensor cores work. Every access of device memory has 16 bytes; k and n are
// multiples of 8. GPUs below sm_80 do not run these kernels.
#include "columnsums.cuh"
#include "mma.cuh"

#define PW_THREADS 256
#define PW_ROWS 64                            // of a tile: kernels.pointwiseRows
#define PW_INNER 64                           // products of a step; as many as rows, see pointwise_both
#define PW_STEP (PW_THREADS / (PW_INNER / 8)) // rows between those of a that a thread loads
#define PW_EACH (PW_ROWS / PW_STEP)           // rows of a that a thread loads

#if defined(FSPDA_HOST) || __CUDA_ARCH__ >= 800

// at_pack returns where a pack of a row lies in a tile with rows of COLUMNS numbers. The order of
// packs differs from row to row, so that eight rows of a column lie in different banks.
template <int COLUMNS> __device__ inline int at_pack(int row, int pack) {
  return row * COLUMNS + ((pack ^ (row & 7)) << 3);
}

// Words is a pack of eight numbers as stored, two in a word.
struct Words {
  u32 v[4];
};

template <class T> __device__ inline Words load_words(const T *from) {
  const uint4 q = *(const uint4 *)from;
  return Words{{q.x, q.y, q.z, q.w}};
}

template <class T> __device__ inline void store_words(T *to, const Words &w) {
  *(uint4 *)to = uint4{w.v[0], w.v[1], w.v[2], w.v[3]};
}

// number returns number j of a pack.
template <class T> __device__ inline float number(const Words &w, int j) {
  return j % 2 ? high_of<T>(w.v[j / 2]) : low_of<T>(w.v[j / 2]);
}

// Columns is the affine map of four columns.
struct Columns {
  Four mean, scale, shift;

  __device__ void load(const float *mean_of, const float *scale_of, const float *shift_of, int column) {
    mean = load4(mean_of + column);
    scale = load4(scale_of + column);
    shift = load4(shift_of + column);
  }
  __device__ float operator()(float x, int j) const { return affine_of(x, mean.v[j], scale.v[j], shift.v[j]); }
};

// The inputs of a product have two matrices, or one if two is false, which plain ones only copy. make
// computes number 4·half + j of a pack of a. What an input does is known when it is compiled: making
// the numbers takes more instructions than their products.

// What a ForwardInput does.
#define INPUT_PLAIN 0   // a = x
#define INPUT_RELU 1    // a = ReLU(map(x))
#define INPUT_ADD 2     // a = ReLU(map(x) + z)
#define INPUT_ADD_MAP 3 // a = ReLU(map(x) + map_z(z)), the second summand rounded

template <class T, int KIND> struct ForwardInput {
  const T *first, *second; // x and z
  T *stored;               // a; null if the input is plain
  u8 *mask;                // null, or one bit for each number of a that is greater than 0
  const float *mean, *scale, *shift, *mean_z, *scale_z, *shift_z;
  int h, w, stride; // of the images in a plain x, if the stride is not 1
  static constexpr bool plain = KIND == INPUT_PLAIN, two = KIND == INPUT_ADD || KIND == INPUT_ADD_MAP;

  // source returns the row of x that row r of a plain input is.
  __device__ i64 source(i64 r) const {
    if (!plain || stride == 1) return r;
    const u32 columns = (w - 1) / stride + 1, each = ((h - 1) / stride + 1) * columns;
    const u32 image = (u32)r / each, pixel = (u32)r - image * each, y = pixel / columns, x = pixel - y * columns;
    return ((i64)image * h + y * stride) * w + x * stride;
  }
  struct Factors {
    Columns x, z;
  };
  __device__ void load(Factors &f, int column) const {
    f.x.load(mean, scale, shift, column);
    if (KIND == INPUT_ADD_MAP) f.z.load(mean_z, scale_z, shift_z, column);
  }
  __device__ float make(const Words &x, const Words &z, const Factors &f, int half, int j) const {
    float r = f.x(number<T>(x, 4 * half + j), j);
    if (two) {
      float w = number<T>(z, 4 * half + j);
      if (KIND == INPUT_ADD_MAP) w = rounded_to<T>(f.z(w, j));
      r = r + w;
    }
    return r <= 0.0f ? 0.0f : r;
  }
  __device__ void store(const Words &v, u32 bits, i64 at) const {
    store_words(stored + at, v);
    if (mask) mask[at / 8] = (u8)bits;
  }
};

// GradientInput is the gradient of a normalisation: a·g + ((x-mean)·b + e), where g is dy, masked by
// the ReLU if MASK is RELU_FROM_INPUT, or if it is RELU_GIVEN and relu_mask is.
#define RELU_GIVEN -1
template <class T, int MASK> struct GradientInput {
  const T *first, *second; // dy and x
  T *stored;
  const float *mean, *scale, *shift, *a, *b, *e;
  int relu_mask;
  static constexpr bool plain = false, two = true;

  __device__ bool masked() const { return (MASK == RELU_GIVEN ? relu_mask : MASK) == RELU_FROM_INPUT; }

  __device__ i64 source(i64 r) const { return r; }
  struct Factors {
    Columns map;
    Four a, b, e;
  };
  __device__ void load(Factors &f, int column) const {
    f.map.mean = load4(mean + column);
    if (masked()) f.map.load(mean, scale, shift, column);
    f.a = load4(a + column);
    f.b = load4(b + column);
    f.e = load4(e + column);
  }
  __device__ float make(const Words &dy, const Words &x, const Factors &f, int half, int j) const {
    float g = number<T>(dy, 4 * half + j);
    const float v = number<T>(x, 4 * half + j);
    if (masked()) g = f.map(v, j) > 0.0f ? g : 0.0f;
    return f.a.v[j] * g + ((v - f.map.mean.v[j]) * f.b.v[j] + f.e.v[j]);
  }
  __device__ void store(const Words &v, u32, i64 at) const { store_words(stored + at, v); }
};

// The outputs of a product take U rows of a pack of columns of c. from is the pack of the first row
// of the block.

// Moments: y = c, and Σ y - from and Σ (y - from)².
template <class T> struct ForwardOutput {
  T *y;
  Statistics to;
  static constexpr bool has_from = true;
  static constexpr int rows = 2;

  __device__ bool sums() const { return true; }
  template <int U> __device__ void take(float (&s1)[8], float (&s2)[8], Words (&c)[U], const bool (&there)[U],
                                        const Words &from, i64 at, i64 step, int) const {
#pragma unroll
    for (int u = 0; u < U; u++) {
      if (!there[u]) continue;
      store_words(y + at + u * step, c[u]);
#pragma unroll
      for (int j = 0; j < 8; j++) {
        const float d = number<T>(c[u], j) - number<T>(from, j);
        s1[j] = s1[j] + d;
        s2[j] = fmaf(d, d, s2[j]);
      }
    }
  }
  __device__ void finish(int column, double sum, double squares, i64 m) const {
    to.finish(column, 0.0, sum, squares, m);
  }
};

// GradientOutput: dx = c. With RELU_FROM_INPUT, also the sums of g, which is dx masked by the ReLU.
// With RELU_FROM_BITS, dx = g, which is c + other masked by the ReLU, and its sums. other may be
// null.
template <class T> struct GradientOutput {
  T *dx;
  const T *other, *x;
  const u8 *mask;
  const float *mean, *scale, *shift;
  int relu_mask;
  GradientFactors to;
  static constexpr bool has_from = false;
  static constexpr int rows = 1;

  __device__ bool sums() const { return relu_mask != RELU_NONE; }
  template <int U> __device__ void take(float (&s1)[8], float (&s2)[8], Words (&c)[U], const bool (&there)[U],
                                        const Words &, i64 at, i64 step, int column) const {
    Words in[U] = {}, added[U] = {};
    u32 bits[U] = {};
    if (sums()) {
#pragma unroll
      for (int u = 0; u < U; u++)
        if (there[u]) in[u] = load_words(x + at + u * step);
      if (other) {
#pragma unroll
        for (int u = 0; u < U; u++)
          if (there[u]) added[u] = load_words(other + at + u * step);
      }
      if (relu_mask == RELU_FROM_BITS) {
#pragma unroll
        for (int u = 0; u < U; u++) bits[u] = there[u] ? mask[(at + u * step) / 8] : 0;
      }
    }
    if (relu_mask == RELU_FROM_INPUT) store(c, there, at, step);
#pragma unroll
    for (int half = 0; half < 2; half++)
      if (sums()) add<U>(s1, s2, c, in, added, bits, there, column, half);
    if (relu_mask != RELU_FROM_INPUT) store(c, there, at, step);
  }
  template <int U>
  __device__ void store(const Words (&c)[U], const bool (&there)[U], i64 at, i64 step) const {
#pragma unroll
    for (int u = 0; u < U; u++)
      if (there[u]) store_words(dx + at + u * step, c[u]);
  }
  // add adds four columns to the sums and replaces c by g.
  template <int U> __device__ void add(float (&s1)[8], float (&s2)[8], Words (&c)[U], const Words (&in)[U],
                                       const Words (&added)[U], const u32 (&bits)[U], const bool (&there)[U],
                                       int column, int half) const {
    Columns map;
    map.mean = load4(mean + column + 4 * half);
    if (relu_mask == RELU_FROM_INPUT) map.load(mean, scale, shift, column + 4 * half);
#pragma unroll
    for (int u = 0; u < U; u++) {
      if (!there[u]) continue;
#pragma unroll
      for (int h = 0; h < 4; h += 2) {
        float g[2];
#pragma unroll
        for (int l = 0; l < 2; l++) {
          const int j = 4 * half + h + l;
          const float v = number<T>(in[u], j);
          g[l] = number<T>(c[u], j);
          if (other) g[l] = rounded_to<T>(g[l] + number<T>(added[u], j));
          const bool open = relu_mask == RELU_FROM_BITS ? bits[u] >> j & 1 : map(v, h + l) > 0.0f;
          g[l] = open ? g[l] : 0.0f;
          s1[j] = s1[j] + g[l];
          s2[j] = fmaf(g[l], v - map.mean.v[h + l], s2[j]);
        }
        c[u].v[2 * half + h / 2] = pair<T>(g[0], g[1]);
      }
    }
  }
  __device__ void finish(int column, double g, double products, i64 m) const { to.finish(column, g, products, m); }
};

// PointwiseMemory is the shared memory of a block. c and the sums of warps take the place of the
// tiles that they come from.
template <class T, int N> struct PointwiseMemory {
  union {
    struct {
      T a[PW_ROWS * PW_INNER], b[PW_INNER * N];
    };
    T c[PW_ROWS * N];
    double warps[8][2][N];
    double totals[2][N];
  };
  float sums[16][PW_THREADS]; // of each thread
  T from[N];                  // the first row of c
};

// BothMemory is the shared memory of a block that computes both gradients.
template <class T, int N, int STEPS> struct BothMemory {
  union {
    T a[PW_ROWS * PW_INNER];
    T c[PW_ROWS * N];
    double warps[8][2][N];
    double totals[2][N];
  };
  T b[STEPS][PW_INNER * N];    // all weights of the block's columns
  T x[2][PW_ROWS * N];         // of this tile and of the next
  double sums[16][PW_THREADS]; // of each thread
  T from[N];                   // unused
};

// Weights is b: rows of n columns, or, if ALONG, n rows of k products.
template <class T, int N, bool ALONG> struct Weights {
  static constexpr int packs = ALONG ? PW_INNER / 8 : N / 8, each = N / 32, step = PW_THREADS / packs;
  const T *from;
  int n, k;
  Words held[each];

  __device__ void fetch_step(int first) {
    const int row = threadIdx.x / packs, pack = threadIdx.x % packs * 8, column = blockIdx.x * N;
#pragma unroll
    for (int i = 0; i < each; i++) {
      const int r = row + i * step, outer = column + (ALONG ? r : pack), inner = first + (ALONG ? pack : r);
      held[i] = Words{};
      if (outer < n && inner < k) held[i] = load_words(from + (ALONG ? (i64)outer * k + inner : (i64)inner * n + outer));
    }
  }
  __device__ void put(T *tile) const {
    const int row = threadIdx.x / packs, pack = threadIdx.x % packs;
#pragma unroll
    for (int i = 0; i < each; i++) store_words(tile + at_pack<8 * packs>(row + i * step, pack), held[i]);
  }
};

// Inputs is the rows of a that a thread loads in a step.
template <class T, class Input> struct Inputs {
  Words first[PW_EACH], second[PW_EACH];
  i64 row;
  int column;

  __device__ void fetch_step(const Input &in, i64 from, int step, i64 m, int k) {
    row = from + threadIdx.x / (PW_INNER / 8);
    column = step + threadIdx.x % (PW_INNER / 8) * 8;
    const T *q = in.second + row * k + column;
#pragma unroll
    for (int i = 0; i < PW_EACH; i++)
      first[i] = there(i, m, k) ? load_words(in.first + in.source(row + i * PW_STEP) * k + column) : Words{};
    if (Input::two) {
#pragma unroll
      for (int i = 0; i < PW_EACH; i++)
        second[i] = there(i, m, k) ? load_words(q + (i64)i * PW_STEP * k) : Words{};
    }
  }
  __device__ bool there(int i, i64 m, int k) const { return row + i * PW_STEP < m && column < k; }

  __device__ void put(const Input &in, T *tile, i64 m, int k) {
    const int to = threadIdx.x / (PW_INNER / 8), pack = threadIdx.x % (PW_INNER / 8);
    if (Input::plain) {
#pragma unroll
      for (int i = 0; i < PW_EACH; i++) store_words(tile + at_pack<PW_INNER>(to + i * PW_STEP, pack), first[i]);
      return;
    }
    u32 bits[PW_EACH] = {}; // of the numbers that are greater than 0
#pragma unroll
    for (int half = 0; half < 2; half++) {
      typename Input::Factors f;
      if (column < k) in.load(f, column + 4 * half);
#pragma unroll
      for (int i = 0; i < PW_EACH; i++) {
        if (!there(i, m, k)) continue;
        float v[4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
          v[j] = in.make(first[i], second[i], f, half, j);
          bits[i] |= (v[j] > 0.0f ? 1u : 0u) << (4 * half + j);
        }
        first[i].v[2 * half] = pair<T>(v[0], v[1]);
        first[i].v[2 * half + 1] = pair<T>(v[2], v[3]);
      }
    }
#pragma unroll
    for (int i = 0; i < PW_EACH; i++) {
      if (in.stored && there(i, m, k) && blockIdx.x == 0) in.store(first[i], bits[i], (row + i * PW_STEP) * k + column);
      store_words(tile + at_pack<PW_INNER>(to + i * PW_STEP, pack), first[i]);
    }
  }
};

// multiply adds 64 products to the sums of a warp, whose rows start at `row` of a and whose columns
// start at `column` of b. A row of a has the products of a sum, or, if BELOW, a column has. A row
// of b has them if ALONG, else a column.
template <class T, int N, bool BELOW, bool ALONG>
__device__ inline void multiply(float (&s)[2][N / 32][4], const T *a, const T *b, int row, int column) {
  const int lane = threadIdx.x % WARP, low = lane % 16, high = lane / 16;
#pragma unroll
  for (int p = 0; p < PW_INNER / 16; p++) {
    u32 fa[2][4];
#pragma unroll
    for (int i = 0; i < 2; i++)
      load_matrices<BELOW>(fa[i], a + (BELOW ? at_pack<PW_INNER>(16 * p + 8 * high + lane % 8, row / 8 + 2 * i + low / 8)
                                             : at_pack<PW_INNER>(row + 16 * i + low, 2 * p + high)));
#pragma unroll
    for (int j = 0; j < N / 64; j++) {
      u32 fb[4]; // of 16 columns
      load_matrices<!ALONG>(fb, b + (ALONG ? at_pack<PW_INNER>(column + 16 * j + 8 * high + lane % 8, 2 * p + low / 8)
                                           : at_pack<N>(16 * p + low, column / 8 + 2 * j + high)));
#pragma unroll
      for (int i = 0; i < 2; i++)
#pragma unroll
        for (int h = 0; h < 2; h++) mma_half<T>(s[i][2 * j + h], fa[i], {fb[2 * h], fb[2 * h + 1]});
    }
  }
}

// put_sums rounds the sums of a warp and stores them in the tile c.
template <class T, int N> __device__ inline void put_sums(T *c, const float (&s)[2][N / 32][4], int row, int column) {
  const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int i = 0; i < 2; i++)
#pragma unroll
    for (int j = 0; j < N / 32; j++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        *(u32 *)(c + at_pack<N>(row + 16 * i + 8 * h + g, column / 8 + j) + 2 * t) =
            pair<T>(s[i][j][2 * h], s[i][j][2 * h + 1]);
      }
}

// take_tile hands the tile c to the output, whose first row is `row`.
template <class T, int N, class Memory, class Output>
__device__ inline void take_tile(Memory &memory, const Output &out, i64 row, bool first, i64 m, int n) {
  constexpr int packs = N / 8, step = PW_THREADS / packs, U = Output::rows;
  const int down = threadIdx.x / packs, pack = threadIdx.x % packs, column = blockIdx.x * N + pack * 8;
  if (column >= n) return;
  Words from = {};
  if (Output::has_from) {
    from = load_words(first ? memory.c + at_pack<N>(0, pack) : memory.from + pack * 8);
    if (first && down == 0) store_words(memory.from + pack * 8, from);
  }
  float s1[8] = {}, s2[8] = {};
#pragma unroll 1
  for (int i = down; i < PW_ROWS; i += U * step) {
    Words c[U];
    bool there[U];
#pragma unroll
    for (int u = 0; u < U; u++) {
      c[u] = load_words(memory.c + at_pack<N>(i + u * step, pack));
      there[u] = row + i + u * step < m;
    }
    out.take(s1, s2, c, there, from, (row + i) * n + column, (i64)step * n, column);
  }
#pragma unroll
  for (int j = 0; j < 8; j++) {
    memory.sums[j][threadIdx.x] = memory.sums[j][threadIdx.x] + s1[j];
    memory.sums[j + 8][threadIdx.x] = memory.sums[j + 8][threadIdx.x] + s2[j];
  }
}

// rows_taken returns how many of the first `rows` rows of a block a thread has taken.
template <int N> __device__ inline int rows_taken(i64 rows) {
  constexpr int step = PW_THREADS / (N / 8);
  const int down = threadIdx.x / (N / 8);
  return rows <= down ? 0 : (int)((rows - down + step - 1) / step);
}

// add_sums adds the sums of all threads and blocks, and finishes the columns.
template <class T, int N, class Memory, class Output>
__device__ inline void add_sums(Memory &memory, const Output &out, i64 rows, i64 m, int n, double *part,
                                u32 *arrived) {
  double s1[8], s2[8];
  const int count = rows_taken<N>(rows);
  __syncthreads(); // the first row is there, and no thread reads c any more
#pragma unroll
  for (int j = 0; j < 8; j++) {
    s1[j] = memory.sums[j][threadIdx.x], s2[j] = memory.sums[j + 8][threadIdx.x];
    if (Output::has_from && count > 0 && blockIdx.x * N + threadIdx.x % (N / 8) * 8 < n) {
      const double from = to_float(memory.from[threadIdx.x % (N / 8) * 8 + j]);
      s2[j] = s2[j] + from * (2.0 * s1[j] + count * from);
      s1[j] = s1[j] + count * from;
    }
  }
  write_part<N / 8>(memory.warps, part, n, (int)blockIdx.y, s1, s2);
  const int column = blockIdx.x * N + threadIdx.x;
  if (add_parts<N>(memory.totals, part, n, (int)blockIdx.y, arrived) && threadIdx.x < N && column < n)
    out.finish(column, memory.totals[0][threadIdx.x], memory.totals[1][threadIdx.x], m);
}

// pointwise computes `tiles` tiles of c, one below the other.
template <class T, int N, bool ALONG, class Input, class Output>
__device__ inline void pointwise(const Input &in, const T *w, const Output &out, i64 m, int n, int k, int tiles,
                                 double *part, u32 *arrived) {
  DYNAMIC_SHARED(bytes);
  PointwiseMemory<T, N> &memory = *(PointwiseMemory<T, N> *)bytes;
  const i64 begin = (i64)blockIdx.y * tiles * PW_ROWS, most = begin + (i64)tiles * PW_ROWS, end = most < m ? most : m;
  const int warp = threadIdx.x / WARP, row = warp % 2 * 32, column = warp / 2 * (N / 4);
#pragma unroll
  for (int j = 0; j < 16; j++) memory.sums[j][threadIdx.x] = 0.0f;
  Inputs<T, Input> a;
  Weights<T, N, ALONG> b{w, n, k};
  a.fetch_step(in, begin, 0, m, k);
  b.fetch_step(0);
#pragma unroll 1
  for (i64 tile = begin; tile < end; tile += PW_ROWS) {
    float s[2][N / 32][4] = {};
#pragma unroll 1
    for (int p = 0; p < k; p += PW_INNER) {
      __syncthreads();
      a.put(in, memory.a, m, k);
      b.put(memory.b);
      __syncthreads();
      const bool more = p + PW_INNER < k;
      if (more || tile + PW_ROWS < end) a.fetch_step(in, more ? tile : tile + PW_ROWS, more ? p + PW_INNER : 0, m, k);
      if (k > PW_INNER) b.fetch_step(more ? p + PW_INNER : 0);
      if (tile + row < end) multiply<T, N, false, ALONG>(s, memory.a, memory.b, row, column);
    }
    __syncthreads();
    put_sums<T, N>(memory.c, s, row, column);
    __syncthreads();
    take_tile<T, N>(memory, out, tile, tile == begin, m, n);
  }
  if (out.sums()) add_sums<T, N>(memory, out, end - begin, m, n, part, arrived);
}

// copy_rows copies a tile of rows of x, m×n.
template <class T, int N> __device__ inline void copy_rows(T *tile, const T *x, i64 row, i64 m, int n) {
  constexpr int packs = N / 8;
#pragma unroll 1
  for (int i = threadIdx.x; i < PW_ROWS * packs; i += PW_THREADS) {
    const int r = i / packs, pack = i % packs, column = blockIdx.x * N + 8 * pack;
    const bool there = row + r < m && column < n;
    copy_async(tile + at_pack<N>(r, pack), there ? x + (row + r) * n + column : x, there);
  }
}

// pointwise_both computes c as pointwise does, for k = 64·STEPS, and this block's part of the
// gradient of the filters, filters[blockIdx.y][k×n] = aᵀ·x, in registers. x is the input of the
// convolution. a is not stored.
template <class T, int N, int STEPS, class Input, class Output>
__device__ inline void pointwise_both(const Input &in, const T *w, const Output &out, const T *x,
                                      float *filters, i64 m, int n, int tiles, double *part, u32 *arrived) {
  DYNAMIC_SHARED(bytes);
  BothMemory<T, N, STEPS> &memory = *(BothMemory<T, N, STEPS> *)bytes;
  constexpr int K = STEPS * PW_INNER;
  const i64 begin = (i64)blockIdx.y * tiles * PW_ROWS, most = begin + (i64)tiles * PW_ROWS, end = most < m ? most : m;
  const int warp = threadIdx.x / WARP, row = warp % 2 * 32, column = warp / 2 * (N / 4);
#pragma unroll
  for (int j = 0; j < 16; j++) memory.sums[j][threadIdx.x] = 0.0;
  for (int q = 0; q < STEPS; q++) copy_rows<T, N>(memory.b[q], w, q * PW_INNER, K, n);
  copy_rows<T, N>(memory.x[0], x, begin, m, n);
  end_copies();
  float f[STEPS][2][N / 32][4] = {};
  Inputs<T, Input> a;
  a.fetch_step(in, begin, 0, m, K);
  int turn = 0;
#pragma unroll 1
  for (i64 tile = begin; tile < end; tile += PW_ROWS, turn ^= 1) {
    float s[2][N / 32][4] = {};
#pragma unroll 1
    for (int q = 0; q < STEPS; q++) {
      const bool more = q + 1 < STEPS;
      __syncthreads();
      a.put(in, memory.a, m, K);
      if (q == 0) {
        if (tile + PW_ROWS < end) copy_rows<T, N>(memory.x[turn ^ 1], x, tile + PW_ROWS, m, n);
        end_copies();
        wait_copies<1>();
      }
      __syncthreads();
      if (more || tile + PW_ROWS < end)
        a.fetch_step(in, more ? tile : tile + PW_ROWS, more ? (q + 1) * PW_INNER : 0, m, K);
      if (tile + row < end) multiply<T, N, false, false>(s, memory.a, memory.b[q], row, column);
#pragma unroll
      for (int r = 0; r < STEPS; r++)
        if (r == q) multiply<T, N, true, false>(f[r], memory.a, memory.x[turn], row, column);
    }
    __syncthreads();
    put_sums<T, N>(memory.c, s, row, column);
    __syncthreads();
    take_tile<T, N>(memory, out, tile, false, m, n);
  }
  float *to = filters + (i64)blockIdx.y * K * n;
  const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int q = 0; q < STEPS; q++)
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
      for (int j = 0; j < N / 32; j++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
          const int k = q * PW_INNER + row + 16 * i + 8 * h + g, c = blockIdx.x * N + column + 8 * j + 2 * t;
          if (c < n) *(float2 *)(to + (i64)k * n + c) = float2{f[q][i][j][2 * h], f[q][i][j][2 * h + 1]};
        }
  if (out.sums()) add_sums<T, N>(memory, out, end - begin, m, n, part, arrived);
}

#define ON_TENSOR_CORES(...) __VA_ARGS__
#else
#define ON_TENSOR_CORES(...)
#endif

#define FORWARD_KERNEL(T, N, KIND, suffix)                                                                             \
  KERNEL_OCCUPANCY(PW_THREADS, 2)                                                                                      \
  pointwise_##suffix(T *y, const T *x, const T *z, T *stored, u8 *mask, const float *mean, const float *scale,         \
                     const float *shift, const float *mean_z, const float *scale_z, const float *shift_z, int height,  \
                     int width, int stride, const T *w, i64 m, int n, int k, int tiles, double *part, u32 *arrived,    \
                     const float *gamma, const float *beta, double eps, float *mean_y, float *variance_y,              \
                     float *scale_y, float *shift_y) {                                                                 \
    ON_TENSOR_CORES(pointwise<T, N, true>(                                                                             \
        ForwardInput<T, KIND>{x, z, stored, mask, mean, scale, shift, mean_z, scale_z, shift_z, height, width,         \
                              stride},                                                                                 \
        w, ForwardOutput<T>{y, Statistics{gamma, beta, eps, mean_y, variance_y, scale_y, shift_y}}, m, n, k, tiles,    \
        part, arrived);)                                                                                               \
  }

#define GRAD_KERNEL(T, N, MASK, suffix)                                                                                \
  KERNEL_OCCUPANCY(PW_THREADS, 2)                                                                                      \
  pointwise_grad_##suffix(T *dx, const T *dy, const T *x, T *stored, const float *mean, const float *scale,            \
                          const float *shift, const float *a, const float *b, const float *e, const T *w, i64 m,       \
                          int n, int k, int tiles, double *part, u32 *arrived, const T *other, const T *x_out,         \
                          const u8 *mask_out, const float *mean_out, const float *scale_out, const float *shift_out,   \
                          int relu_mask_out, const float *gamma, const float *variance, double eps, float *dgamma,     \
                          float *dbeta, float *a_out, float *b_out, float *e_out) {                                    \
    ON_TENSOR_CORES(pointwise<T, N, false>(                                                                            \
        GradientInput<T, MASK>{dy, x, stored, mean, scale, shift, a, b, e, MASK}, w,                                   \
        GradientOutput<T>{dx, other, x_out, mask_out, mean_out, scale_out, shift_out, relu_mask_out,                   \
                          GradientFactors{gamma, variance, eps, dgamma, dbeta, a_out, b_out, e_out}},                  \
        m, n, k, tiles, part, arrived);)                                                                               \
  }

#define POINTWISE_KERNELS(T, N, suffix)                                                                                \
  FORWARD_KERNEL(T, N, INPUT_PLAIN, N##_plain_##suffix)                                                                \
  FORWARD_KERNEL(T, N, INPUT_RELU, N##_relu_##suffix)                                                                  \
  FORWARD_KERNEL(T, N, INPUT_ADD, N##_add_##suffix)                                                                    \
  FORWARD_KERNEL(T, N, INPUT_ADD_MAP, N##_add_map_##suffix)                                                            \
  GRAD_KERNEL(T, N, RELU_NONE, N##_plain_##suffix)                                                                     \
  GRAD_KERNEL(T, N, RELU_FROM_INPUT, N##_relu_##suffix)

POINTWISE_KERNELS(Half, 64, f16)
POINTWISE_KERNELS(Half, 128, f16)
POINTWISE_KERNELS(BFloat, 64, bf16)
POINTWISE_KERNELS(BFloat, 128, bf16)

// add_filters adds the parts of the gradient of filters, n numbers each, in order.
template <class T> __device__ inline void add_filters(T *dw, const float *filters, int n, int parts) {
  const int i = 4 * (int)thread_index();
  if (i >= n) return;
  Four sum = {};
#pragma unroll 8
  for (int p = 0; p < parts; p++) {
    const Four v = load4(filters + (i64)p * n + i);
#pragma unroll
    for (int j = 0; j < 4; j++) sum.v[j] = sum.v[j] + v.v[j];
  }
  *(uint2 *)(dw + i) = uint2{pair<T>(sum.v[0], sum.v[1]), pair<T>(sum.v[2], sum.v[3])};
}

#define BOTH_KERNEL(T, N, STEPS, suffix)                                                                               \
  KERNEL_OCCUPANCY(PW_THREADS, 1)                                                                                      \
  pointwise_both_##suffix(T *dx, const T *dy, const T *x, const float *mean, const float *scale, const float *shift,   \
                          const float *a, const float *b, const float *e, int relu_mask, const T *w, i64 m, int n,     \
                          int tiles, double *part, u32 *arrived, const T *other, const T *x_out, const u8 *mask_out,   \
                          const float *mean_out, const float *scale_out, const float *shift_out, int relu_mask_out,    \
                          const float *gamma, const float *variance, double eps, float *dgamma, float *dbeta,          \
                          float *a_out, float *b_out, float *e_out, const T *input, float *filters) {                  \
    ON_TENSOR_CORES(pointwise_both<T, N, STEPS>(                                                                       \
        GradientInput<T, RELU_GIVEN>{dy, x, nullptr, mean, scale, shift, a, b, e, relu_mask}, w,                       \
        GradientOutput<T>{dx, other, x_out, mask_out, mean_out, scale_out, shift_out, relu_mask_out,                   \
                          GradientFactors{gamma, variance, eps, dgamma, dbeta, a_out, b_out, e_out}},                  \
        input, filters, m, n, tiles, part, arrived);)                                                                  \
  }

#define BOTH_KERNELS(T, suffix)                                                                                        \
  BOTH_KERNEL(T, 256, 1, 64_##suffix)                                                                                  \
  BOTH_KERNEL(T, 128, 2, 128_##suffix)                                                                                 \
  BOTH_KERNEL(T, 64, 4, 256_##suffix)                                                                                  \
  BOTH_KERNEL(T, 64, 8, 512_##suffix)                                                                                  \
  KERNEL(64) add_filters_##suffix(T *dw, const float *filters, int n, int parts) {                                     \
    add_filters<T>(dw, filters, n, parts);                                                                             \
  }

BOTH_KERNELS(Half, f16)
BOTH_KERNELS(BFloat, bf16)
