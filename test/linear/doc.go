// Package linear checks that concurrent clients of the broker see one consistent order of events.
//
// Hundreds of clients send all kinds of Open Service Broker API calls for a few instances and bindings, and record every
// request and response with its time. A model of the API then has to explain the recorded history: there must be an order of the
// calls in which the model returns the same responses, and in which each call takes effect between its request and its response.
// Porcupine searches for this order, separately for each instance with its bindings. A history without such an order reveals a bug
// in the broker or in the model, and the test writes a visualization of the history to testdata/histories. The clients run for a
// minute, or for SOAK_DURATION if it is set.
//
// The package is separate from package osb because its load has a separate time budget, and because the model is tested without
// a broker: illegal_test.go has, for each rule, a history that the model must reject.
//
//   - history_test.go: calls, responses and the recorder.
//   - model_test.go: the state of an instance and its bindings, and how operations end.
//   - model_instance_test.go, model_binding_test.go: one function for each call. Update them when the API's behavior changes.
//   - check_test.go: the search, and the explanation of a failure.
//   - load_test.go: the clients and their random calls.
//   - linear_test.go: the deployments, and the kinds of responses that a run must contain.
package linear
