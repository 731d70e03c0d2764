package osb

import "net/http"

func rowCloudFoundryContext(r *row) {
	context := fields{
		"platform": "cloudfoundry", "organization_guid": "o", "organization_name": "on", "space_guid": "s", "space_name": "sn",
		"instance_name": "in", "organization_annotations": fields{"example.com/a": "b"}, "space_annotations": fields{},
		"instance_annotations": fields{"x": "y"},
	}
	id := r.createInstance(fields{"context": context})

	context["organization_name"], context["space_name"], context["instance_name"] = "renamed", "renamed", "renamed"
	r.updateContext(id, context)
}

func rowKubernetesContext(r *row) {
	context := fields{
		"platform": "kubernetes", "namespace": "n", "clusterid": "c", "instance_name": "in", "namespace_annotations": fields{"a": "b"},
		"instance_annotations": fields{},
	}
	id := r.createInstance(fields{"context": context, "organization_guid": nil, "space_guid": nil})

	context["namespace_annotations"] = fields{}
	r.updateContext(id, context)
}

func rowUnknownPlatformIsAccepted(r *row) {
	for _, context := range []fields{{"platform": "x"}, {"platform": ""}, {"anything": []int{1}, "platform": "x y"}, {}} {
		r.want("a context of any platform", r.put(r.newID(), r.order(fields{"context": context})), http.StatusAccepted)
	}
}

func rowBindResourceForms(r *row) {
	id := r.createInstance()

	for i, resource := range []any{
		nil,
		fields{},
		fields{"app_guid": "a"},
		fields{"app_guid": ""},
		fields{"app_guid": "a", "space_guid": "s"},
		fields{"route": "example.com"},
		fields{"credential_client_id": "c"},
		fields{"backup_agent": true, "x": fields{}},
	} {
		binding := "b" + string(rune('0'+i))
		r.want("a bind", r.bindNow(id, binding, r.binding(fields{"bind_resource": resource})), http.StatusCreated)
	}
}

// rowDashboardClientIsComplete checks the dashboard clients in the catalog, which currently has none.
func rowDashboardClientIsComplete(r *row) {
	for _, offering := range r.catalog() {
		for _, name := range []string{"id", "secret", "redirect_uri"} {
			if text, _ := offering.DashboardClient[name].(string); offering.DashboardClient != nil && text == "" {
				r.Errorf("dashboard_client of %s lacks %s", offering.Name, name)
			}
		}
	}
}
