// Package bench runs the experiments of the paper and searches. Package measure below it measures
// the cost of training.
//
// A [Figure] is read from one of figures/*.yaml and describes the runs of a figure of the paper.
// [Figure.Jobs] returns their configurations for a variant and a [Scale]; a [Sweep] returns those
// of a hyperparameter search. A [Campaign] runs such a list of jobs, each in its own folder. It can
// be interrupted and run again: finished runs are kept and unfinished ones resumed. A [Table]
// summarizes the outcomes. Plots are made by package web from the run folders. [Calibration]
// forecasts the time of jobs on this machine.
package bench
