// Arguments for up to 16 pieces of work in one launch: EACH declares one parameter per piece, and
// PICK selects that of the piece blockIdx.z.
#pragma once

#define EACH(T, p) \
  T p##0, T p##1, T p##2, T p##3, T p##4, T p##5, T p##6, T p##7, T p##8, T p##9, T p##10, T p##11, T p##12, \
      T p##13, T p##14, T p##15
#define PICK1(p, i) case i: return p##i;
#define PICK(p) \
  [&]() { \
    switch (blockIdx.z) { \
      PICK1(p, 1) PICK1(p, 2) PICK1(p, 3) PICK1(p, 4) PICK1(p, 5) PICK1(p, 6) PICK1(p, 7) PICK1(p, 8) \
      PICK1(p, 9) PICK1(p, 10) PICK1(p, 11) \
      PICK1(p, 12) PICK1(p, 13) PICK1(p, 14) PICK1(p, 15) \
    } \
    return p##0; \
  }()
