// Pooling of images with their channels last. A thread takes a pack of channels of one pixel.
#include "half.cuh"

// Window is the geometry of a pooling of h×w×c images by r×r windows into p×q ones.
struct Window {
  int h, w, c, r, stride, pad, p, q;
};

// Place is a thread's pack: pixel y, x of an image of rows×columns pixels, and its first channel.
template <class T> struct Place {
  i64 image;
  int y, x, channel, count;
  bool inside;

  __device__ Place(i64 images, int rows, int columns, int c) {
    const int packs = (c + Pack<T>::size - 1) / Pack<T>::size;
    i64 i = thread_index();
    channel = (int)(i % packs) * Pack<T>::size;
    i /= packs;
    x = (int)(i % columns);
    i /= columns;
    y = (int)(i % rows);
    image = i / rows;
    inside = image < images;
    count = c - channel < Pack<T>::size ? c - channel : Pack<T>::size;
  }
};

// max_pool: the maximum of each window, and its place in the window, row·r+column: the first of equals. NaN wins. A is how places are kept.
template <class T, class A> __device__ inline void max_pool(T *y, A *at, const T *x, i64 images, const Window &g) {
  constexpr int N = Pack<T>::size;
  const Place<T> o(images, g.p, g.q, g.c);
  if (!o.inside) return;
  const bool whole = g.c % N == 0 && fours(address(x) | address(y));
  Pack<T> best = {};
  int where[N];
  bool some = false;
  for (int row = 0; row < g.r; row++) {
    const int h = o.y * g.stride - g.pad + row;
    if (h < 0 || h >= g.h) continue;
    for (int column = 0; column < g.r; column++) {
      const int w = o.x * g.stride - g.pad + column;
      if (w < 0 || w >= g.w) continue;
      const Pack<T> v = load_pack(x + ((o.image * g.h + h) * g.w + w) * g.c + o.channel, o.count, whole);
#pragma unroll
      for (int j = 0; j < N; j++)
        if (!some || (!(v.v[j] <= best.v[j]) && best.v[j] == best.v[j])) {
          best.v[j] = v.v[j];
          where[j] = row * g.r + column;
        }
      some = true;
    }
  }
  const i64 to = ((o.image * g.p + o.y) * g.q + o.x) * g.c + o.channel;
  store_pack(y + to, best, o.count, whole);
#pragma unroll
  for (int j = 0; j < N; j++)
    if (j < o.count) at[to + j] = (A)where[j];
}

// max_pool_grad: every dy is added to where its maximum came from, row by row of the windows that hold a pixel.
template <class T, class A> __device__ inline void max_pool_grad(T *dx, const T *dy, const A *at, i64 images, const Window &g) {
  constexpr int N = Pack<T>::size;
  const Place<T> i(images, g.h, g.w, g.c);
  if (!i.inside) return;
  const bool whole = g.c % N == 0 && fours(address(dx) | address(dy));
  const int top = i.y + g.pad - g.r < 0 ? 0 : (i.y + g.pad - g.r) / g.stride + 1;
  const int left = i.x + g.pad - g.r < 0 ? 0 : (i.x + g.pad - g.r) / g.stride + 1;
  Pack<T> sum = {};
  for (int p = top; p < g.p && p * g.stride <= i.y + g.pad; p++)
    for (int q = left; q < g.q && q * g.stride <= i.x + g.pad; q++) {
      const int place = (i.y + g.pad - p * g.stride) * g.r + i.x + g.pad - q * g.stride;
      const i64 from = ((i.image * g.p + p) * g.q + q) * g.c + i.channel;
      const Pack<T> v = load_pack(dy + from, i.count, whole);
#pragma unroll
      for (int j = 0; j < N; j++)
        if (j < i.count && (int)at[from + j] == place) sum.v[j] = sum.v[j] + v.v[j];
    }
  store_pack(dx + ((i.image * g.h + i.y) * g.w + i.x) * g.c + i.channel, sum, i.count, whole);
}

// avg_pool: the sum of an image's m pixels in float64, from the first to the last, times 1/m.
template <class T> __device__ inline void avg_pool(T *y, const T *x, i64 images, int m, int c) {
  const i64 i = thread_index();
  if (i >= images * c) return;
  const T *from = x + i / c * m * c + i % c;
  double s = 0.0;
#pragma unroll 4
  for (int k = 0; k < m; k++) s = s + (double)to_float(from[(i64)k * c]);
  y[i] = Number<T>::from((float)(s * (1.0 / (double)m)));
}

// avg_pool_grad: dy/m at every pixel.
template <class T> __device__ inline void avg_pool_grad(T *dx, const T *dy, i64 images, int m, int c) {
  const Place<T> i(images, 1, m, c);
  if (!i.inside) return;
  const bool whole = c % Pack<T>::size == 0 && fours(address(dx) | address(dy));
  Pack<T> v = load_pack(dy + i.image * c + i.channel, i.count, whole);
#pragma unroll
  for (int j = 0; j < Pack<T>::size; j++) v.v[j] = v.v[j] / (float)m;
  store_pack(dx + (i.image * m + i.x) * c + i.channel, v, i.count, whole);
}

#define POOL_KERNELS(T, A, name)                                                                                                         \
  KERNEL(256) max_pool_##name(T *y, A *at, const T *x, i64 images, int h, int w, int c, int r, int stride, int pad, int p, int q) {      \
    max_pool<T, A>(y, at, x, images, Window{h, w, c, r, stride, pad, p, q});                                                             \
  }                                                                                                                                      \
  KERNEL(256) max_pool_grad_##name(T *dx, const T *dy, const A *at, i64 images, int h, int w, int c, int r, int stride, int pad, int p,  \
                                   int q) {                                                                                              \
    max_pool_grad<T, A>(dx, dy, at, images, Window{h, w, c, r, stride, pad, p, q});                                                      \
  }                                                                                                                                      \
  KERNEL(256) avg_pool_##name(T *y, const T *x, i64 images, int m, int c) { avg_pool<T>(y, x, images, m, c); }                           \
  KERNEL(256) avg_pool_grad_##name(T *dx, const T *dy, i64 images, int m, int c) { avg_pool_grad<T>(dx, dy, images, m, c); }

POOL_KERNELS(float, float, f32)
POOL_KERNELS(Half, u8, f16)
POOL_KERNELS(Brain, u8, bf16)
