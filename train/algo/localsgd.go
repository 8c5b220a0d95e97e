package algo

import "fspda/train/setting"

// LocalSGD is rounds of local steps, each followed by the mean of all models (McMahan and others
// 2017; Stich 2019): [DiLoCo] with an outer step of 1 and without outer momentum.
type LocalSGD struct{ DiLoCo }

var localSGD = Method{Name: "local-sgd", Keys: []setting.Key{LocalSteps}, Params: momentKeys(0, 0), Check: momentsKept,
	New: func(s Settings) Algorithm { return newLocalSGD(s) }}

func newLocalSGD(s Settings) LocalSGD {
	return LocalSGD{DiLoCo{H: s.Whole("local_steps"), Rate: 1, Moments: newMoments(s), Descent: s.Descent}}
}

func (a LocalSGD) Traits() Traits {
	t := a.DiLoCo.Traits()
	t.Scalars = a.numbers()
	t.Optimizers = append([]string{Any}, scheduleFree...)
	t.About = About{"the model, an all-reduce at the end of a round", "2·(n-1)·v·d a round", "1",
		"bias, which grows with local_steps", "none", "McMahan and others 2017; Stich 2019"}
	return t
}
