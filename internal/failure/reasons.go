package failure

// ReasonMeaning documents a reason and its remedy, for the page docs/user/errors.md.
type ReasonMeaning struct{ Reason, Meaning, Remedy string }

// Reasons documents all reasons of this package. Operations also fail with codes of Gardener, such as ERR_INFRA_QUOTA_EXCEEDED, unchanged.
func Reasons() []ReasonMeaning {
	return []ReasonMeaning{
		{ReasonInternal, "an internal error of the broker or the Provisioner", "look for the id of the operation in the log"},
		{ReasonTimeout, "something did not finish in time", "`ebctl operation explain` says what the operation waited for; then retry"},
		{ReasonHTTPStatus, "an upstream returned an unexpected response", "check that system; the operation retries by itself"},
		{ReasonNotFound, "a row that the operation needs is gone", "delete the instance if it still exists; the operation has nothing left to do"},
		{ReasonAlreadyExists, "an object with the same name exists", "remove the object that the text names, then retry"},
		{ReasonConflict, "the object changed at the same time", "none: the operation retries by itself; if it has failed, retry it"},
		{ReasonClusterNotFound, "the cluster is not in Gardener", "check the log of Gardener, unless somebody removed the cluster by hand"},
		{ReasonSystemAway, "an upstream failed several calls in a row, and the circuit breaker is open", "repair that system: the operation continues by itself"},
		{ReasonBusy, "too many calls to an upstream are in flight", "none: the operation retries by itself"},
		{ReasonDirectorNilResponse, "Director returned no result", "check Director; the operation retries by itself"},
		{ReasonDirectorIDMismatch, "Director returned another runtime", "check Director; the operation retries by itself"},
	}
}
