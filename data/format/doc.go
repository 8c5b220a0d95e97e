// Package format has the error of malformed files and folders: [Error] says what was found in
// which file, which value was expected and how to mend it. The packages data, data/images and
// data/text return it as their FormatError.
package format
