// Package acceptance runs everything that a GPU is judged by on the machine it is on, and sets what
// was measured beside what was asked for.
//
// [Parts] lists what is run: checks, measurements, and trainings, each a few calls of the program
// itself in processes of their own. So one that fails, hangs or loses the GPU is no harm to the
// others: it has a limit of time, and what it found until then stays. [Run] plays them within a
// budget of time, the most telling first, and keeps all results in a folder after every call:
// called again it goes on with what is left. [Results.Lines] are the lines of the table: bar,
// measured, verdict.
//
// PyTorch is measured by bench/peers/card.py, which takes turns with the program on the same card.
package acceptance
