output "queue_url" {
  description = "AWS_SQS_QUEUE_URL of the servers."
  value       = aws_sqs_queue.this.id
}

output "queue_arn" {
  description = "ARN of the queue."
  value       = aws_sqs_queue.this.arn
}

output "dead_url" {
  description = "URL of the dead-letter queue."
  value       = aws_sqs_queue.dead.id
}

output "dead_arn" {
  description = "ARN of the dead-letter queue."
  value       = aws_sqs_queue.dead.arn
}

output "producer_policy_arn" {
  description = "For the role of servers that take events in."
  value       = aws_iam_policy.producer.arn
}

output "consumer_policy_arn" {
  description = "For the role of servers that write events."
  value       = aws_iam_policy.consumer.arn
}

output "redrive_policy_arn" {
  description = "For people who send dead letters again."
  value       = aws_iam_policy.redrive.arn
}
