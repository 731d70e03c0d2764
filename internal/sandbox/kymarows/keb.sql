CREATE TABLE schema_migrations (version bigint PRIMARY KEY, dirty boolean NOT NULL);
INSERT INTO schema_migrations VALUES (202210121025, false);

CREATE TABLE instances (
	instance_id varchar(255) PRIMARY KEY,
	runtime_id varchar(255) NOT NULL,
	global_account_id varchar(255) NOT NULL,
	service_id varchar(255) NOT NULL,
	service_plan_id varchar(255) NOT NULL,
	dashboard_url varchar(255) NOT NULL,
	provisioning_parameters text NOT NULL,
	created_at timestamp with time zone NOT NULL DEFAULT now(),
	updated_at timestamp with time zone NOT NULL DEFAULT now(),
	deleted_at timestamp with time zone NOT NULL DEFAULT '0001-01-01 00:00:00+00',
	sub_account_id varchar(255),
	service_name varchar(255),
	service_plan_name varchar(255),
	provider_region varchar(32),
	version integer NOT NULL DEFAULT 0,
	provider varchar(16),
	subscription_global_account_id text,
	expired_at timestamp with time zone
);

CREATE TABLE operations (
	id varchar(255) PRIMARY KEY,
	instance_id varchar(255) NOT NULL,
	target_operation_id varchar(255) NOT NULL,
	version integer NOT NULL,
	state varchar(32) NOT NULL,
	description text NOT NULL,
	type varchar(32) NOT NULL,
	data json NOT NULL,
	created_at timestamp with time zone NOT NULL,
	updated_at timestamp with time zone NOT NULL,
	orchestration_id varchar(64),
	provisioning_parameters json NOT NULL,
	finished_stages text
);
CREATE INDEX operations_by_instance_id ON operations (instance_id);

CREATE TABLE orchestrations (
	orchestration_id varchar(255) PRIMARY KEY,
	created_at timestamp with time zone NOT NULL,
	updated_at timestamp with time zone NOT NULL,
	state varchar(32) NOT NULL,
	parameters text NOT NULL,
	description text,
	runtime_operations text,
	type varchar(32) NOT NULL DEFAULT 'upgradeKyma'
);

CREATE TABLE runtime_states (
	id varchar(255) PRIMARY KEY,
	runtime_id varchar(255),
	operation_id varchar(255),
	created_at timestamp with time zone NOT NULL,
	kyma_config text,
	cluster_config text,
	kyma_version text,
	k8s_version text,
	cluster_setup text NOT NULL DEFAULT ''
);
