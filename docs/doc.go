// Package docs is the manual: the pages of this folder, inside the program, so that fspda docs
// shows them without a network.
//
// reference.md is made from the code and so is the drawing of step-sizes.md; make generate makes
// them anew, and tests hold them against the code. Every page is plain Markdown that reads well as
// text.
package docs
