package setup

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"fspda/internal/bounded"
	"fspda/train"
	"fspda/train/config"
)

// ConfigFlags defines a flag for every key of the configuration.
func ConfigFlags(fs *pflag.FlagSet, c *train.Config) {
	for _, f := range c.Fields() {
		name := FlagName(f.Name)
		switch v := f.Value.(type) {
		case *string:
			fs.StringVar(v, name, *v, f.Help)
		case *bool:
			fs.BoolVar(v, name, *v, f.Help)
		case *int:
			fs.IntVar(v, name, *v, f.Help)
		case *uint64:
			fs.Uint64Var(v, name, *v, f.Help)
		case *float64:
			fs.Float64Var(v, name, *v, f.Help)
		case *config.Params:
			help := f.Help
			if all := config.ParamHelp(); all != "" {
				help += ". " + all
			}
			fs.Var(v, name, help)
		case pflag.Value:
			fs.Var(v, name, f.Help)
			if v.Type() == "bool" {
				fs.Lookup(name).NoOptDefVal = "true" // the flag alone sets it
			}
		default:
			panic(fmt.Sprintf("fspda: no flag for the type %T of key %s", v, f.Name))
		}
		Topic(fs, f.Topic, name)
	}
}

// FlagName returns the flag of a key: dashes replace underscores, and --param sets one of params.
func FlagName(key string) string {
	if key == "params" || strings.HasPrefix(key, "params.") {
		return "param"
	}
	return strings.ReplaceAll(key, "_", "-")
}

// keysOf returns the keys that a flag sets: its own, or one for each of params.
func keysOf(f *pflag.Flag) (keys []string) {
	if params, ok := f.Value.(*config.Params); ok {
		return params.Keys()
	}
	return []string{strings.ReplaceAll(f.Name, "-", "_")}
}

// Agents returns the number of agents in a configuration file, 0 if it does not say.
func Agents(file string) (int, error) {
	if file == "" {
		return 0, nil
	}
	text, err := bounded.YAMLFile(file)
	if err != nil {
		return 0, &train.ConfigError{Key: "-c", Got: file, Err: err}
	}
	c := train.Default()
	c.Agents = 0 // Check refuses a file that says 0
	err = c.Parse(file, text)
	return c.Agents, err
}

// ReadConfig combines defaults, which depend on the network and the data set, the configuration of
// the run folder to resume, the YAML file and the flags; the later ones win. Keys of file and flags
// are marked as explicit. An empty file or folder is left out.
func ReadConfig(file, resumed string, fs *pflag.FlagSet) (train.Config, error) {
	if resumed != "" {
		old, err := train.ReadConfig(resumed)
		if err == nil {
			return overlay(old, file, fs)
		} else if !errors.Is(err, os.ErrNotExist) {
			return old, &train.FolderError{Path: resumed, Got: "cannot be read", Err: err}
		}
	}
	return config.Made(func(c *train.Config) (err error) {
		*c, err = overlay(*c, file, fs)
		return err
	})
}

// WithFlags changes a configuration by flags, and marks their keys as explicit.
func WithFlags(c train.Config, fs *pflag.FlagSet) (train.Config, error) { return overlay(c, "", fs) }

// overlay changes a configuration by a file and flags.
func overlay(c train.Config, file string, fs *pflag.FlagSet) (train.Config, error) {
	if f := fs.Lookup("recipe"); f != nil && f.Changed {
		c.SetExplicit("recipe") // the recipe of the file does not count
	}
	if file != "" {
		text, err := bounded.YAMLFile(file)
		if err != nil {
			return c, &train.ConfigError{Key: "-c", Got: file, Err: err}
		}
		if err := c.Parse(file, text); err != nil {
			return c, explainFlag(err, fs)
		}
	}
	over := pflag.NewFlagSet("", pflag.ContinueOnError)
	ConfigFlags(over, &c)
	var errs []error
	fs.Visit(func(g *pflag.Flag) {
		if over.Lookup(g.Name) != nil {
			errs = append(errs, over.Set(g.Name, g.Value.String()))
			c.SetExplicit(keysOf(g)...)
		}
	})
	c.FoldNames()
	return c, errors.Join(append(errs, c.FindData(), c.UseRecipe())...)
}

// explainFlag says that an unknown key of a file is a flag of the command, where it is one.
func explainFlag(err error, fs *pflag.FlagSet) error {
	if unknown, ok := errors.AsType[*config.UnknownKeyError](err); ok && config.Alias(unknown.Name) == "" {
		if f := fs.Lookup(strings.ReplaceAll(unknown.Name, "_", "-")); f != nil {
			unknown.Err.Got = "is no key of files"
			unknown.Err.Want = fmt.Sprintf("leave it out, and give the command the flag --%s", f.Name)
		}
	}
	return err
}

// Flags returns flags of the values that were set explicitly in c.
func Flags(c train.Config) (flags []string) {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	ConfigFlags(fs, &c)
	for _, key := range c.Explicit() {
		value := fs.Lookup(FlagName(key)).Value.String()
		if name, ok := strings.CutPrefix(key, "params."); ok {
			value = config.Params{name: c.Params[name]}.String()
		}
		flags = append(flags, "--"+FlagName(key)+"="+value)
	}
	return flags
}
