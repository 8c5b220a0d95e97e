// Pooling of images with the channels last. A thread handles a pack of channels of one pixel. The
// blocks of an image are consecutive, so that a thread computes its position with 32-bit
// arithmetic. All loads of a window, or of a row of it, are issued before the first is used.
#include "columnsums.cuh"

// Window is the geometry of pooling h×w×c images by r×r windows to p×q pixels.
struct Window {
  int h, w, c, r, stride, pad, p, q;
};

// Position is a thread's pack: pixel y, x of an image of rows×columns pixels, and its first
// channel.
template <class T> struct Position {
  i64 image;
  int y, x, channel, count;
  bool inside;

  __device__ Position(i64 images, int rows, int columns, int c) {
    const u32 packs = (u32)(c + Pack<T>::size - 1) / Pack<T>::size;
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    const u32 pixel = i / packs, row = pixel / (u32)columns;
    channel = (int)(i - pixel * packs) * Pack<T>::size;
    y = (int)row;
    x = (int)(pixel - row * (u32)columns);
    image = (i64)blockIdx.z * gridDim.y + blockIdx.y;
    inside = y < rows && image < images;
    count = c - channel < Pack<T>::size ? c - channel : Pack<T>::size;
  }
};

// Indices holds the positions of the maxima of a pack's channels, as type A.
template <class A, int N> struct __align__(N * sizeof(A)) Indices {
  A v[N];
};

template <class A, int N> __device__ inline Indices<A, N> load_indices(const A *p, int count, bool whole) {
  if (whole) return *(const Indices<A, N> *)p;
  Indices<A, N> s;
#pragma unroll
  for (int j = 0; j < N; j++) s.v[j] = j < count ? p[j] : (A)0;
  return s;
}

template <class A, int N> __device__ inline void store_indices(A *p, const Indices<A, N> &s, int count, bool whole) {
  if (whole) {
    *(Indices<A, N> *)p = s;
    return;
  }
#pragma unroll
  for (int j = 0; j < N; j++)
    if (j < count) p[j] = s.v[j];
}

// WindowMax is the maximum of a window for each channel of a pack, and its position.
template <class T, class A> struct WindowMax {
  Pack<T> value;
  Indices<A, Pack<T>::size> indices;
  bool some = false;

  // update adds the pixel at an index of the window. Pixels are added in order.
  __device__ void update(const Pack<T> &v, int index) {
#pragma unroll
    for (int j = 0; j < Pack<T>::size; j++)
      if (!some || (!(v.v[j] <= value.v[j]) && value.v[j] == value.v[j])) {
        value.v[j] = v.v[j];
        indices.v[j] = (A)index;
      }
    some = true;
  }
};

// clamped returns the number from 0 to n-1 that is nearest to i.
__device__ inline int clamped(int i, int n) { return i < 0 ? 0 : i < n ? i : n - 1; }

// AsStored is what max_pool reads: numbers as they are.
template <class T> struct AsStored {
  __device__ AsStored(const float *, const float *, const float *, int, int, bool) {}
  __device__ const Pack<T> &operator()(const Pack<T> &v) const { return v; }
  static constexpr int rows = 3; // of a window that are loaded at once
};

// Normalised is the map of a normalisation and its ReLU (norm.cu), rounded as it would be in
// memory, of the numbers that max_pool reads.
template <class T> struct Normalised {
  static constexpr int N = Pack<T>::size, rows = 1;
  float mean[N], scale[N], shift[N];

  __device__ Normalised(const float *mean_of, const float *scale_of, const float *shift_of, int channel, int count,
                        bool whole) {
#pragma unroll
    for (int j = 0; j < N; j += 4) {
      Four m = {}, k = {}, s = {};
      if (whole) {
        m = load4(mean_of + channel + j), k = load4(scale_of + channel + j), s = load4(shift_of + channel + j);
      } else {
#pragma unroll
        for (int i = 0; i < 4; i++)
          if (j + i < count)
            m.v[i] = mean_of[channel + j + i], k.v[i] = scale_of[channel + j + i], s.v[i] = shift_of[channel + j + i];
      }
#pragma unroll
      for (int i = 0; i < 4; i++) mean[j + i] = m.v[i], scale[j + i] = k.v[i], shift[j + i] = s.v[i];
    }
  }
  __device__ Pack<T> operator()(Pack<T> v) const {
#pragma unroll
    for (int j = 0; j < N; j++) {
      const float r = affine_of(v.v[j], mean[j], scale[j], shift[j]);
      v.v[j] = to_float(Number<T>::from(r <= 0.0f ? 0.0f : r));
    }
    return v;
  }
};

// scan adds a 3×3 window whose first pixel is at row top and column left. For pixels outside the
// image a neighbour is loaded and ignored: a branch would delay the next load.
template <class T, class A, class Map>
__device__ inline void scan(WindowMax<T, A> &best, const Map &map, const T *x, const Position<T> &o, int top, int left,
                            const Window &g) {
  constexpr int R = 3, ROWS = Map::rows;
#pragma unroll 1
  for (int first = 0; first < R; first += ROWS) {
    RawPack<T> raw[ROWS * R];
#pragma unroll
    for (int k = 0; k < ROWS * R; k++) {
      const int h = clamped(top + first + k / R, g.h), w = clamped(left + k % R, g.w);
      raw[k] = fetch<T, true>(x + ((o.image * g.h + h) * g.w + w) * g.c + o.channel, o.count);
    }
#pragma unroll
    for (int k = 0; k < ROWS * R; k++) {
      const int h = top + first + k / R, w = left + k % R;
      if (h >= 0 && h < g.h && w >= 0 && w < g.w) best.update(map(unpack(raw[k])), first * R + k);
    }
  }
}

// max_pool: the maximum of each window, and its index in the window, row·r+column: the first of
// equal ones. NaN wins. A is the type of the stored indices. Map is applied to x.
template <class T, class A, class Map>
__device__ inline void max_pool(T *y, A *at, const T *x, i64 images, const Window &g, const float *mean,
                                const float *scale, const float *shift) {
  constexpr int N = Pack<T>::size;
  const Position<T> o(images, g.p, g.q, g.c);
  if (!o.inside) return;
  const bool whole = g.c % N == 0 && aligned16(address(x) | address(y) | address(at));
  const int top = o.y * g.stride - g.pad, left = o.x * g.stride - g.pad;
  const Map map(mean, scale, shift, o.channel, o.count,
                whole && aligned16(address(mean) | address(scale) | address(shift)));
  WindowMax<T, A> best;
  if (g.r == 3 && whole) {
    scan<T, A, Map>(best, map, x, o, top, left, g);
  } else {
    for (int k = 0; k < g.r * g.r; k++) {
      const int h = top + k / g.r, w = left + k % g.r;
      if (h < 0 || h >= g.h || w < 0 || w >= g.w) continue;
      best.update(map(load_pack(x + ((o.image * g.h + h) * g.w + w) * g.c + o.channel, o.count, whole)), k);
    }
  }
  const i64 to = ((o.image * g.p + o.y) * g.q + o.x) * g.c + o.channel;
  store_pack(y + to, best.value, o.count, whole);
  store_indices(at + to, best.indices, o.count, whole);
}

// max_pool_grad: each dy is added to the pixel that its maximum came from, over the windows that
// contain the pixel, row by row. S×S windows are loaded at a time.
template <class T, class A, int S, bool WHOLE>
__device__ inline void gather_windows(Pack<T> &sum, const T *dy, const A *at, const Position<T> &i, int top, int left,
                                      const Window &g) {
  constexpr int N = Pack<T>::size;
  RawPack<T> raw[S * S];
  Indices<A, N> indices[S * S];
#pragma unroll
  for (int k = 0; k < S * S; k++) {
    const int p = clamped(top + k / S, g.p), q = clamped(left + k % S, g.q);
    const i64 from = ((i.image * g.p + p) * g.q + q) * g.c + i.channel;
    raw[k] = fetch<T, WHOLE>(dy + from, i.count);
    indices[k] = load_indices<A, N>(at + from, i.count, WHOLE);
  }
#pragma unroll
  for (int k = 0; k < S * S; k++) {
    const int p = top + k / S, q = left + k % S, row = i.y + g.pad - p * g.stride, column = i.x + g.pad - q * g.stride;
    if (p >= g.p || q >= g.q || row < 0 || row >= g.r || column < 0 || column >= g.r) continue;
    const Pack<T> v = unpack(raw[k]);
#pragma unroll
    for (int j = 0; j < N; j++)
      if (j < i.count && (int)indices[k].v[j] == row * g.r + column) sum.v[j] = sum.v[j] + v.v[j];
  }
}

template <class T, class A>
__device__ inline void max_pool_grad(T *dx, const T *dy, const A *at, i64 images, const Window &g) {
  constexpr int N = Pack<T>::size;
  const Position<T> i(images, g.h, g.w, g.c);
  if (!i.inside) return;
  const bool whole = g.c % N == 0 && aligned16(address(dx) | address(dy) | address(at));
  const int top = i.y + g.pad - g.r < 0 ? 0 : (i.y + g.pad - g.r) / g.stride + 1;
  const int left = i.x + g.pad - g.r < 0 ? 0 : (i.x + g.pad - g.r) / g.stride + 1;
  Pack<T> sum = {};
  if (g.r <= 2 * g.stride && whole) { // at most two windows in each direction
    gather_windows<T, A, 2, true>(sum, dy, at, i, top, left, g);
  } else {
    for (int p = top; p < g.p && p * g.stride <= i.y + g.pad; p++)
      for (int q = left; q < g.q && q * g.stride <= i.x + g.pad; q++)
        gather_windows<T, A, 1, false>(sum, dy, at, i, p, q, g);
  }
  store_pack(dx + ((i.image * g.h + i.y) * g.w + i.x) * g.c + i.channel, sum, i.count, whole);
}

// avg_pool: the sum of an image's m pixels in float64, in order, times 1/m.
template <class T> __device__ inline void avg_pool(T *y, const T *x, i64 images, int m, int c) {
  const i64 i = thread_index();
  if (i >= images * c) return;
  const T *from = x + i / c * m * c + i % c;
  double s = 0.0;
#pragma unroll 8
  for (int k = 0; k < m; k++) s = s + (double)to_float(from[(i64)k * c]);
  y[i] = Number<T>::from((float)(s * (1.0 / (double)m)));
}

// avg_pool_grad: dy/m at every pixel.
template <class T> __device__ inline void avg_pool_grad(T *dx, const T *dy, i64 images, int m, int c) {
  const Position<T> i(images, 1, m, c);
  if (!i.inside) return;
  const bool whole = c % Pack<T>::size == 0 && aligned16(address(dx) | address(dy));
  Pack<T> v = load_pack(dy + i.image * c + i.channel, i.count, whole);
#pragma unroll
  for (int j = 0; j < Pack<T>::size; j++) v.v[j] = v.v[j] / (float)m;
  store_pack(dx + (i.image * m + i.x) * c + i.channel, v, i.count, whole);
}

#define POOL_KERNELS(T, A, name)                                                                                       \
  KERNEL(256)                                                                                                          \
  max_pool_##name(T *y, A *at, const T *x, i64 images, int h, int w, int c, int r, int stride, int pad, int p,         \
                  int q) {                                                                                             \
    max_pool<T, A, AsStored<T>>(y, at, x, images, Window{h, w, c, r, stride, pad, p, q}, nullptr, nullptr, nullptr);   \
  }                                                                                                                    \
  KERNEL(256)                                                                                                          \
  max_pool_norm_##name(T *y, A *at, const T *x, i64 images, int h, int w, int c, int r, int stride, int pad, int p,    \
                       int q, const float *mean, const float *scale, const float *shift) {                             \
    max_pool<T, A, Normalised<T>>(y, at, x, images, Window{h, w, c, r, stride, pad, p, q}, mean, scale, shift);        \
  }                                                                                                                    \
  KERNEL(256)                                                                                                          \
  max_pool_grad_##name(T *dx, const T *dy, const A *at, i64 images, int h, int w, int c, int r, int stride, int pad,   \
                       int p, int q) {                                                                                 \
    max_pool_grad<T, A>(dx, dy, at, images, Window{h, w, c, r, stride, pad, p, q});                                    \
  }                                                                                                                    \
  KERNEL(256) avg_pool_##name(T *y, const T *x, i64 images, int m, int c) { avg_pool<T>(y, x, images, m, c); }         \
  KERNEL(256) avg_pool_grad_##name(T *dx, const T *dy, i64 images, int m, int c) {                                     \
    avg_pool_grad<T>(dx, dy, images, m, c);                                                                            \
  }

POOL_KERNELS(float, float, f32)
POOL_KERNELS(Half, u8, f16)
POOL_KERNELS(BFloat, u8, bf16)
