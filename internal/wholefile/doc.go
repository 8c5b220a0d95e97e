// Package wholefile writes files of which nobody ever reads a half: caches that several programs
// share, pictures, exported models.
package wholefile
