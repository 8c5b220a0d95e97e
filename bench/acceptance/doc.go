// Package acceptance runs all acceptance checks of a GPU on the current machine and compares the
// measurements with targets.
//
// [Options.Parts] lists the checks, measurements and trainings. Each part calls the program in
// separate processes with a time limit, so a part that fails, hangs or loses the GPU does not
// affect the others, and its results so far are kept. [Run] runs the parts within a time budget,
// the most important first, and saves all results in a folder after every call; called again it
// continues with the remaining parts. [Results.Lines] returns the table: target, measurement,
// verdict.
//
// PyTorch is measured by bench/peers/card.py, in turns with the program on the same GPU.
package acceptance
