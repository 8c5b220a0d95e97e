// Package wholefile writes files atomically: readers never see a partial file. It is used for
// caches shared by several programs, checkpoints, data sets, images and exported models. [DiskFull]
// recognizes the error of a full disk.
package wholefile
