// Package images reads labelled JPEG, PNG, GIF, WebP and BMP images from folders, archives and
// packed sets.
//
// A [Source] is a list of labelled images that decodes any of them on demand, as [RGB]. [Open]
// detects the format of a path and returns its training and test images as a [Set]:
//
//	class folders        ROOT/train/CLASS/*.jpg, ROOT/val/CLASS/*.jpg (or test), as in torchvision;
//	                     ROOT/CLASS/train/*.jpg; ROOT/CLASS/*.jpg
//	pictures with labels a table such as metadata.csv, or a file of its own for each picture
//	WebDataset           shards of key.jpg + key.cls, or key.json
//	ImageNet tars        ILSVRC2012_img_train.tar, a tar of one tar per class, and
//	                     ILSVRC2012_img_val.tar with a list of labels
//	parquet              shards of Hugging Face, and folders of save_to_disk, by
//	                     fspda/data/images/parquet
//	packed set           the output of `fspda data prepare`, by fspda/data/images/packed
//
// The first three are found in a folder, and in tars and zips, which are read in place: a [FormatError]
// refuses a tree that can be understood in two ways.
//
// The last two register themselves by [Register] when a program imports them, since they depend on
// large libraries.
//
// Memory holds an index of the images, not the images: an archive may have any size. Images are
// sorted by (class, name) in every format, so the same images give the same list. Optional
// abilities of a source are further interfaces: [Encoded], [Raw], [Named], [Weighed].
//
// Conventions. Labels count from 0 in the order of the sorted class names of the training images,
// as in torchvision. Arguments named dst are written. Malformed content is a [FormatError] of a
// file or a [PictureError] of one image, never a panic, and memory is bounded by
// [Options].MaxPixels.
//
// Where to look next: open.go for the detection of formats, tree.go, layout.go and labels.go for
// folders and archives, decode.go for the
// decoders of pictures, jpeg for photographs.
package images
