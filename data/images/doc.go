// Package images is where pictures come from: folders, archives and packed sets of labelled JPEG
// and PNG files.
//
// A [Source] is a list of labelled pictures that decodes any of them on demand, as [RGB]. [Open]
// finds out what a path holds and returns its training and test pictures as a [Set]:
//
//	class folders        ROOT/train/CLASS/*.jpg, ROOT/val/CLASS/*.jpg (or test), as torchvision's ImageFolder
//	tar of class folders the same in a tar, read where it lies
//	ImageNet tars        ILSVRC2012_img_train.tar, a tar of one tar for each class, and ILSVRC2012_img_val.tar with a list of labels
//	WebDataset           shards of key.jpg + key.cls, or key.json
//	parquet              shards of Hugging Face, by fspda/data/images/parquet
//	packed set           what `fspda data prepare` makes, by fspda/data/images/packed
//
// The last two register themselves with [Register] when a program imports them, since they bring a
// large library along.
//
// Memory holds an index of the pictures, never the pictures: an archive may have any size. Pictures
// are in the order of (class, name), however they are stored, so that the same pictures give the
// same list. What a source can do besides is said by further interfaces: [Encoded], [Raw], [Named],
// [Weighed].
//
// Conventions. Labels count from 0 in the order of the sorted class names of the training pictures,
// as in torchvision. What is named dst is written. Content that is not what it should be is a
// [FormatError] about a file or a [PictureError] about one picture, never a panic, and memory stays
// in proportion to [Options].MaxPixels.
//
// Where to look next: open.go for how a path is recognised, decode.go for what becomes of a file's
// colours.
package images
