// Matrices stored by columns, single or in a batch.
#pragma once
#include <utility>
#include "numbers.h"
#include "fakedriver.h"

namespace fakecuda {

// Factor is a matrix, or a batch of matrices.
struct Factor {
  const void *at;
  int type, ld;
  long long stride;
  bool transposed;
};

// extent returns how many numbers a batch of matrices spans.
inline long long extent(const Factor &f, long long rows, long long columns, int batch) {
  if (f.transposed) std::swap(rows, columns);
  return (batch - 1) * f.stride + (columns - 1) * f.ld + rows;
}

inline bool checked(const char *function, const Factor &f, const char *what, long long rows, long long columns,
                    int batch) {
  if (!is_number(f.type) || f.ld < (f.transposed ? columns : rows)) {
    report_misuse("%s: %s is of type %d with a leading dimension of %d", function, what, f.type, f.ld);
    return false;
  }
  return reachable(function, what, f.at, extent(f, rows, columns, batch) * number_bytes(f.type), number_bytes(f.type));
}

inline double element(const Factor &f, long long i, long long j, int z, bool rounded) {
  if (f.transposed) std::swap(i, j);
  double v = get_number(f.at, f.type, z * f.stride + j * f.ld + i);
  return rounded ? tf32(v) : v;
}

} // namespace fakecuda
