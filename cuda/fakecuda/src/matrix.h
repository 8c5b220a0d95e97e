// Matrices stored by columns, of one batch or several.
#pragma once
#include <utility>
#include "numbers.h"
#include "libraries.h"

namespace fakecuda {

// Factor is a matrix, or one of a batch.
struct Factor {
  const void *at;
  int type, ld;
  long long stride;
  bool turned;
};

// extent is how many numbers a matrix of a batch reaches over.
inline long long extent(const Factor &f, long long rows, long long columns, int batch) {
  if (f.turned) std::swap(rows, columns);
  return (batch - 1) * f.stride + (columns - 1) * f.ld + rows;
}

inline bool checked(const char *function, const Factor &f, const char *what, long long rows, long long columns, int batch) {
  if (!is_number(f.type) || f.ld < (f.turned ? columns : rows)) {
    complain("%s: %s is of type %d with a leading dimension of %d", function, what, f.type, f.ld);
    return false;
  }
  return reachable(function, what, f.at, extent(f, rows, columns, batch) * number_bytes(f.type), number_bytes(f.type));
}

inline double element(const Factor &f, long long i, long long j, int z, bool rounded) {
  if (f.turned) std::swap(i, j);
  double v = get_number(f.at, f.type, z * f.stride + j * f.ld + i);
  return rounded ? tf32(v) : v;
}

} // namespace fakecuda
