# Age alone is blind to poison: what was received three times goes to the back of a
# standard queue. So what arrives in the dead-letter queue alarms too.

resource "aws_cloudwatch_metric_alarm" "dead" {
  alarm_name        = "${aws_sqs_queue.dead.name} is not empty"
  alarm_description = "Messages were given up. forebay doctor tells how many; forebay sqs redrive sends them again once the cause is mended."

  namespace           = "AWS/SQS"
  metric_name         = "ApproximateNumberOfMessagesVisible"
  dimensions          = { QueueName = aws_sqs_queue.dead.name }
  statistic           = "Maximum"
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  period              = 60
  evaluation_periods  = 1
  treat_missing_data  = "notBreaching"

  alarm_actions = var.alarm_actions
  ok_actions    = var.alarm_actions
  tags          = var.tags
}

resource "aws_cloudwatch_metric_alarm" "age" {
  alarm_name        = "${aws_sqs_queue.this.name} is late"
  alarm_description = "The oldest message has waited more than ${var.max_age} s: too few consumers, or a database that is slow or away."

  namespace           = "AWS/SQS"
  metric_name         = "ApproximateAgeOfOldestMessage"
  dimensions          = { QueueName = aws_sqs_queue.this.name }
  statistic           = "Maximum"
  comparison_operator = "GreaterThanThreshold"
  threshold           = var.max_age
  period              = 60
  evaluation_periods  = 3
  treat_missing_data  = "notBreaching"

  alarm_actions = var.alarm_actions
  ok_actions    = var.alarm_actions
  tags          = var.tags
}

resource "aws_cloudwatch_metric_alarm" "in_flight" {
  alarm_name        = "${aws_sqs_queue.this.name} has much in flight"
  alarm_description = "80 % of the 120,000 messages that may be in flight. Beyond, nothing is received, without an error on long polls."

  namespace           = "AWS/SQS"
  metric_name         = "ApproximateNumberOfMessagesNotVisible"
  dimensions          = { QueueName = aws_sqs_queue.this.name }
  statistic           = "Maximum"
  comparison_operator = "GreaterThanThreshold"
  threshold           = 96000
  period              = 60
  evaluation_periods  = 5
  treat_missing_data  = "notBreaching"

  alarm_actions = var.alarm_actions
  ok_actions    = var.alarm_actions
  tags          = var.tags
}

# What is in the dead-letter queue leaves it for good after 14 days.
resource "aws_cloudwatch_metric_alarm" "dead_age" {
  alarm_name        = "${aws_sqs_queue.dead.name} will lose messages"
  alarm_description = "A dead letter is 12 days old; after 14 it is gone."

  namespace           = "AWS/SQS"
  metric_name         = "ApproximateAgeOfOldestMessage"
  dimensions          = { QueueName = aws_sqs_queue.dead.name }
  statistic           = "Maximum"
  comparison_operator = "GreaterThanThreshold"
  threshold           = 1036800
  period              = 3600
  evaluation_periods  = 1
  treat_missing_data  = "notBreaching"

  alarm_actions = var.alarm_actions
  ok_actions    = var.alarm_actions
  tags          = var.tags
}
