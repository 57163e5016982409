DROP INDEX "catalog_internal"."due_claim";--> statement-breakpoint
DROP INDEX "catalog_internal"."due_urgent";--> statement-breakpoint
CREATE INDEX "due_claim" ON "catalog_internal"."due" USING btree ("live","lane","due_at") WHERE held_until is null and largest_call is null;--> statement-breakpoint
CREATE INDEX "due_urgent" ON "catalog_internal"."due" USING btree ("live","rank" DESC NULLS FIRST,"due_at") WHERE held_until is null and largest_call is null and lane = 1;