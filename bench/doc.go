// Package bench runs experiments: figures of the paper and of other papers, searches, and
// comparisons of tuned methods. Package measure below it measures the cost of training.
//
// An [Experiment] is read from a file of YAML, by [Read], or is one of the program's own.
// [Experiment.Jobs] returns the configurations of its runs, changed by [Options] and shortened by a
// [Scale]. A [Campaign] makes such jobs, each in its own folder. It can be interrupted and run
// again: finished runs are kept and unfinished ones resumed. [Experiment.Run] gives points up on
// the way if the search says so. [Experiment.Rank] ranks all points. [Experiment.Choose] picks the
// best point of each run, [Experiment.Fresh] returns the runs that report it, and
// [Experiment.Finish] enters their outcomes. A [Table] summarizes outcomes. Plots are made by
// package web from the run folders. [Calibration] forecasts the time of jobs on this machine.
package bench
