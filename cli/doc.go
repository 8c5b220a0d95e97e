// Package cli is the command fspda as a library.
//
// [Main] runs the command. A program of one's own registers algorithms first, with train.Register,
// and then calls Main: it has every command of fspda, and its algorithms are values of --algo.
package cli
