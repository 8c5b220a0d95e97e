// Package images is where pictures come from: folders, archives and packed sets of labelled JPEG and PNG files.
//
// A [Source] is a list of labelled pictures that decodes any of them on demand, as [RGB].
package images
