// A convolution of images with the channels last, and its gradients. Sums are float64 and rounded
// once.
#pragma once
#include <vector>
#include "numbers.h"

namespace fakecuda {

// Window is the shape of a convolution: images n·h·w·c, filters k·r·s·c, results n·p·q·k.
struct Window {
  int n, h, w, c, k, r, s, p, q;
  int pad[2], stride[2];
  int type;     // of numbers.h
  bool rounded; // to tf32
};

enum Direction { forward, grad_x, grad_w };

inline size_t image_size(const Window &c) { return (size_t)c.n * c.h * c.w * c.c; }
inline size_t filter_size(const Window &c) { return (size_t)c.k * c.r * c.s * c.c; }
inline size_t result_size(const Window &c) { return (size_t)c.n * c.p * c.q * c.k; }

// wide converts numbers to float64.
inline std::vector<double> wide(const Window &c, const void *at, size_t n) {
  std::vector<double> v(n);
  for (size_t i = 0; i < n; i++) {
    v[i] = get_number(at, c.type, i);
    if (c.rounded && c.type == float32) v[i] = tf32(v[i]);
  }
  return v;
}

inline double dot(const double *a, const double *b, int n) {
  double s[4] = {};
  int i = 0;
  for (; i + 4 <= n; i += 4)
    for (int j = 0; j < 4; j++) s[j] += a[i + j] * b[i + j];
  for (; i < n; i++) s[0] += a[i] * b[i];
  return (s[0] + s[1]) + (s[2] + s[3]);
}

inline void add_scaled(double *to, const double *a, double by, int n) {
  for (int i = 0; i < n; i++) to[i] += a[i] * by;
}

// over_taps calls f with the matching offsets of a pixel of x, a tap of w, and a pixel of y.
template <class F> void over_taps(const Window &c, F f) {
  for (int i = 0; i < c.n; i++)
    for (int p = 0; p < c.p; p++)
      for (int q = 0; q < c.q; q++)
        for (int r = 0; r < c.r; r++)
          for (int s = 0; s < c.s; s++) {
            int y = p * c.stride[0] + r - c.pad[0], x = q * c.stride[1] + s - c.pad[1];
            if (y < 0 || y >= c.h || x < 0 || x >= c.w) continue;
            f((((size_t)i * c.h + y) * c.w + x) * c.c, ((size_t)r * c.s + s) * c.c,
              (((size_t)i * c.p + p) * c.q + q) * c.k);
          }
}

// convolve computes y from x and w or, by direction, dx from w and dy, or dw from x and dy. beta
// scales the previous content.
inline void convolve(const Window &c, Direction d, void *x, void *w, void *y, double alpha, double beta) {
  const std::vector<double> vx = d == grad_x ? std::vector<double>() : wide(c, x, image_size(c));
  const std::vector<double> vw = d == grad_w ? std::vector<double>() : wide(c, w, filter_size(c));
  const std::vector<double> vy = d == forward ? std::vector<double>() : wide(c, y, result_size(c));
  void *to = d == forward ? y : d == grad_x ? x : w;
  std::vector<double> sums(d == forward ? result_size(c) : d == grad_x ? image_size(c) : filter_size(c));
  const size_t per_filter = (size_t)c.r * c.s * c.c;
  over_taps(c, [&](size_t xi, size_t wi, size_t yi) {
    for (int k = 0; k < c.k; k++, wi += per_filter, yi++) {
      if (d == forward)
        sums[yi] += dot(&vx[xi], &vw[wi], c.c);
      else if (d == grad_x)
        add_scaled(&sums[xi], &vw[wi], vy[yi], c.c);
      else
        add_scaled(&sums[wi], &vx[xi], vy[yi], c.c);
    }
  });
  for (size_t i = 0; i < sums.size(); i++)
    put_number(to, c.type, i, alpha * sums[i] + (beta != 0 ? beta * get_number(to, c.type, i) : 0));
}

} // namespace fakecuda
