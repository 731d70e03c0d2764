// Package linear checks that concurrent clients of the broker see one consistent order of events.
//
// Hundreds of clients send all calls of the Open Service Broker API to a few instances and bindings, and record every request
// and response with its times. A model of the API then has to explain the recorded history: there must be an order of the calls,
// each at a point between its request and its response, in which the model gives the same responses. Porcupine searches for that
// order, for each instance with its bindings separately. A history without such an order is a bug of the broker, and its
// visualization is written to testdata/histories. The clients run only with SOAK_DURATION, because the check still finds such
// histories; the tests of the model always run.
//
// The package is separate from package osb because its load has a time budget of its own, and because the model is tested
// without a broker: illegal_test.go has a history for each rule that the model must reject.
//
//   - history_test.go: calls, responses and the recorder.
//   - model_test.go: the state of an instance and its bindings, and how operations end.
//   - model_instance_test.go, model_binding_test.go: one function for each call. A change of the API's behavior goes there.
//   - check_test.go: the search, and the explanation of a failure.
//   - load_test.go: the clients, and the minimum of calls that a run has to contain.
package linear
