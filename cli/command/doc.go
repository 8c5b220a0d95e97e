// Package command holds the code that all commands share: errors with exit statuses, checks of
// arguments, output as JSON or text, units, progress, files, and child processes.
//
// An error that has a method ExitCode() int decides the exit status of the program; every other
// error gives 1. See [ExitStatus]. Packages whose names end in cmd hold the commands.
package command
