package weights

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"fspda/model"
	"fspda/train"
	"fspda/train/safetensors"
)

// Preprocessing says how evaluation prepares the images of a network.
type Preprocessing struct {
	Mean, Std []float32 // statistics of pixel/255, by channel
	Crop      float64   // side of the crop in the middle, as a share of the scaled image's shorter side
}

// huggingFaceModels are the networks that timm and transformers have the definition of.
var huggingFaceModels = []string{"resnet18", "resnet34", "resnet50", "resnet101", "resnet152"}

// SaveHuggingFace writes config.json and model.safetensors to a folder, from which timm and
// transformers load the network. The tensors have torchvision's names, which are timm's;
// transformers takes the network from timm. name is the network's in the configuration.
func SaveHuggingFace(folder, name string, net *model.Network, ts []safetensors.Tensor, p Preprocessing,
	meta map[string]string) error {
	image := net.Image()
	if !slices.Contains(huggingFaceModels, name) || len(image) < 3 || image[2] != 3 {
		return &train.ConfigError{Key: "format", Got: "hf",
			Want: fmt.Sprintf("timm and transformers have no definition of "+
				"%s, only of %v for colour images: choose safetensors or onnx", net.Name(), huggingFaceModels)}
	}
	head, _ := net.Layout().Tensor("fc.weight")
	config := map[string]any{
		"architecture": name, "architectures": []string{"TimmWrapperForImageClassification"},
		"model_type": "timm_wrapper", "num_classes": net.Classes(), "num_features": head.Shape[1], "global_pool": "avg",
		"pretrained_cfg": map[string]any{"tag": "fspda", "num_classes": net.Classes(), "mean": p.Mean, "std": p.Std,
			"input_size": []int{3, image[0], image[1]}, "fixed_input_size": false, "crop_pct": p.Crop,
			"crop_mode":     "center",
			"interpolation": "bilinear", "first_conv": "conv1", "classifier": "fc"},
	}
	if names := classesOf(meta); names != nil {
		config["label_names"] = names
	}
	text, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return &train.FolderError{Path: folder, Got: "cannot be created", Err: err, Hint: "choose another with --out"}
	}
	if err := Save(filepath.Join(folder, "model.safetensors"), ts, meta); err != nil {
		return err
	}
	return saveFile(filepath.Join(folder, "config.json"), func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}
