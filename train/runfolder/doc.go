// Package runfolder reads and writes the files that a run leaves on the disk.
//
// A [Folder] holds the configuration, the rows of metrics, the checkpoints, the best mean model and
// the summary of a run. [OpenFolder] creates or resumes one, and locks it against other processes.
// A [Writer] writes checkpoints in the background. An [AgentStore] holds the checkpoints of one
// agent in a run of many processes. [OpenSaved] and [ReadBest] read models for use outside of a
// run.
//
// All files are public formats: folders of older versions must open. Every file appears under its
// final name only when it is complete and flushed, so a killed process or a full disk never damages
// earlier files. Files are verified by checksums when they are read.
//
// Start reading at folder.go, which lists the files, then checkpoint.go.
package runfolder
